"""What each step leaves behind."""
