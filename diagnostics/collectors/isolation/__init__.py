"""Isolates the user's program from what this library does."""
