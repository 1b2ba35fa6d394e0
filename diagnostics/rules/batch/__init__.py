"""Rules about the batch."""
