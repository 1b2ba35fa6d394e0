"""What the answers of a Keras model depend on, measured when the script has ended."""
