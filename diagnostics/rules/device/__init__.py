"""Rules about devices."""
