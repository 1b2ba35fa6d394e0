"""What other tools say about the zoo's exhibits, broken and repaired, beside what `diagnose run` says."""
