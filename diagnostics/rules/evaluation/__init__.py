"""Rules about the evaluation."""
