"""The functions of scikit-learn whose calls by a script are observed."""

from .tap import Tap

# Each metric calls it with its arguments, and the name of the metric.
validate_parameter_constraints = Tap("validate_parameter_constraints", "sklearn.utils._param_validation")
