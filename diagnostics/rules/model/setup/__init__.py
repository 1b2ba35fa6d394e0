"""Rules about checkpoints that are loaded and settings that a model is made with."""
