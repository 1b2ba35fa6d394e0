"""Shared by the collectors of several frameworks."""
