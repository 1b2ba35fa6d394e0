"""Finds the loops that a script writes around `tf.GradientTape`."""
