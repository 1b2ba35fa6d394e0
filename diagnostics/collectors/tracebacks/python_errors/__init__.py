"""What the exceptions of Python's own prove, by their words and the line that raised them."""
