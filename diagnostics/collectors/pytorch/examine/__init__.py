"""Facts of a pipeline that is looked at before it trains."""
