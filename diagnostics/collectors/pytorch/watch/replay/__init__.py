"""Replays the step in which NaN or infinity appeared."""
