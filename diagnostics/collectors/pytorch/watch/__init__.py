"""Facts of a training loop, taken while it runs."""
