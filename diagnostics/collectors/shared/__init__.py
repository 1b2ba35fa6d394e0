"""What collectors of several frameworks use."""
