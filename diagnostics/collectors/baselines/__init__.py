"""Scores simple answers on the user's data: chance, a constant, a linear model. NumPy, but for what reads rows."""
