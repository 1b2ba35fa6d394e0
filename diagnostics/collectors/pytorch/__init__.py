"""Facts of PyTorch models, data, losses and optimizers."""
