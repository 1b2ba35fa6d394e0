"""Checks of a Keras model that a script has trained, once the script has ended; each is found by being here."""
