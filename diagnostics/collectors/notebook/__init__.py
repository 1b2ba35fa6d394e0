"""Reads a notebook's file: what its cells define and read. Nothing is run, and IPython is not needed."""
