"""Tracebacks in the forms of notebooks, editors and test runners, rewritten as Python prints them."""
