"""Parses tracebacks from text, in every form in which people paste them."""
