"""How this package is installed."""

DISTRIBUTION = "training-diagnostics"
