"""The check of a repair: what a script really did, seen from within, and what is made of it."""
