"""Callbacks of stacks that train PyTorch models in a loop of their own."""
