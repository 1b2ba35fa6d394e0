"""Measures what the answers of a model depend on."""
