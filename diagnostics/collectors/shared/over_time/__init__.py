"""What the looks over time of every framework share: when to look, and how to make text and histograms."""
