"""Measurements of a call of `fit`; each is found by being here. TensorFlow may not be there."""
