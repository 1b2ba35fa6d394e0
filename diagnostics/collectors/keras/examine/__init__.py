"""Facts of a compiled model and its data."""
