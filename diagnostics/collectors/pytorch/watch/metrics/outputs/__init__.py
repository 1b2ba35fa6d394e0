"""What the outputs of a model show in sampled steps: predictions, and which targets its loss pulls them to."""
