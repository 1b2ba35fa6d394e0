"""Measurements of sampled steps."""
