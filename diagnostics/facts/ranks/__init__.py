"""Facts about several processes that train together."""
