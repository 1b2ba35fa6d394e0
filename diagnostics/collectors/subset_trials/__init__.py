"""Trains copies on one, two and five examples, and on one batch: the plan, whatever the framework."""
