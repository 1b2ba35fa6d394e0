"""Rules about the predictions and targets that the loss compares."""
