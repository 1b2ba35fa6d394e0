"""Probes of the loops of a script."""
