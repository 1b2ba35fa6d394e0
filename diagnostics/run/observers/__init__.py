"""Each observes one way to train: a loop of PyTorch, a Trainer, a `fit`, a loop around a Keras optimizer."""
