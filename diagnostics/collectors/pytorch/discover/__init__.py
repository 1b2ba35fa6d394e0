"""Finds the training loops of a script that nobody changed."""
