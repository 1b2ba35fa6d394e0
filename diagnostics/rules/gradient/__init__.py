"""Rules about gradients."""
