"""Reads in the source of a script what it does to its rows before they reach a model."""
