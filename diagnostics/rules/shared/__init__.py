"""Evidence that several rules use."""
