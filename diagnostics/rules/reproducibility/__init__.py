"""Rules about reproducing a run."""
