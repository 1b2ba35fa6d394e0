"""Runs a script that nobody changed, and reports on it."""
