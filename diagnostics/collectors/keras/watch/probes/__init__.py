"""Measurements of the batches and the weights of a watched `fit` on TensorFlow; each is found by being here."""
