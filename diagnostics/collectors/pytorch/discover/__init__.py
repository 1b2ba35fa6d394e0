"""Finds the training loops of an unmodified script."""
