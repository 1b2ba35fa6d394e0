"""The catalogue: one rule a file, in the folder of its stage."""
