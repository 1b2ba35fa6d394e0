"""Keeps what this library does apart from the user's program."""
