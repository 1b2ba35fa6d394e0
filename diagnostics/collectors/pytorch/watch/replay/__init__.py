"""Runs the step again in which NaN or infinity appeared."""
