"""Rules about what the model gives to its loss, and what that is compared with."""
