"""Facts of a live exception, or of one that was read from text."""
