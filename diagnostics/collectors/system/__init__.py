"""What the operating system and the driver know."""
