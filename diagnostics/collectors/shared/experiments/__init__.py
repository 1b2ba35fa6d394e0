"""Experiments on copies of a run that did not learn: would it, if one thing were different? No framework."""
