"""Rules about numerical precision."""
