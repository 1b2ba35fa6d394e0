"""Rules about the training data."""
