"""What several ranks have in common while a script runs, and afterwards."""
