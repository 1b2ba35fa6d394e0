"""Reads the source of a script; runs none of it."""
