"""Rules about loading checkpoints and about a model's settings."""
