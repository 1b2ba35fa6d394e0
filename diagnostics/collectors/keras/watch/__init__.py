"""Facts of a `fit`, taken while it runs."""
