"""Collects facts from what a script gives to scikit-learn."""
