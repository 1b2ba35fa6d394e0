"""Probes of the loops of a script, and of their first steps: a file with one that is put here is discovered."""
