"""Rules, their evaluation, and findings."""
