"""Records of every step."""
