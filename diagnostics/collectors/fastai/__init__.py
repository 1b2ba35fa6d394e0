"""What fastai does otherwise than PyTorch: its optimizers, its loaders, its search for a learning rate."""
