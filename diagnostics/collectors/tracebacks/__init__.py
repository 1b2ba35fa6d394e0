"""Reads the text of tracebacks, in every form in which people paste them."""
