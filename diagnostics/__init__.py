"""Says what is wrong with a training run, where, on what evidence, and what to change."""
