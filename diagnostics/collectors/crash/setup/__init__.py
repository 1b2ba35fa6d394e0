"""Recognises failures before or around the training code: versions, checkpoints, settings, examples."""
