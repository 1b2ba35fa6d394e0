"""What is measured in sampled steps only."""
