"""What a user calls in tests: `compare`, the checks of loaders and those of gradients."""
