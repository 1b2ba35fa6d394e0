"""What the graph of a loss shows of how it was computed."""
