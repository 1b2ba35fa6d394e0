"""Reads from the frames of a live exception which expression failed, and what its names held."""
