"""Rules about making a run again."""
