"""Facts of Keras models, data, losses and weights."""
