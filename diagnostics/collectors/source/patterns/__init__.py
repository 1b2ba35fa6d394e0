"""Patterns of bugs that the source alone shows: one module each, with a function `find`."""
