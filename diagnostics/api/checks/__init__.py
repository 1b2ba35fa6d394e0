"""Functions for tests: `compare`, and the checks of loaders and gradients."""
