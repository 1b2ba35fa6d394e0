"""Rules about distributed training."""
