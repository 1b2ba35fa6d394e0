"""Probes of a watched training: a file with one that is put here is discovered."""
