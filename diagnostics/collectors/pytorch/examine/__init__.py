"""Facts about a pipeline before it trains."""
