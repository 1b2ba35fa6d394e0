"""Looks at a fixed batch, and at all weights and gradients, at a few steps of a run."""
