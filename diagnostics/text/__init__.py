"""Words that rules and reports share."""
