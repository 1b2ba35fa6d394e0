"""Facts about an exception, live or parsed from text."""
