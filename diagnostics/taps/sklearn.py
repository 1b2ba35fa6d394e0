"""The functions of scikit-learn whose calls by a script are observed."""

from .tap import Tap

# Each metric calls it with its arguments, and the name of the metric.
validate_parameter_constraints = Tap("validate_parameter_constraints", "sklearn.utils._param_validation")

LABEL_ENCODER, ORDINAL_ENCODER = (
    "sklearn.preprocessing._label:LabelEncoder",
    "sklearn.preprocessing._encoders:OrdinalEncoder",
)
# `fit_transform` of an OrdinalEncoder calls both others, that of a LabelEncoder neither.
encoder_fit = Tap("fit", LABEL_ENCODER, ORDINAL_ENCODER)
encoder_fit_transform = Tap("fit_transform", LABEL_ENCODER)
encoder_transform = Tap("transform", LABEL_ENCODER, ORDINAL_ENCODER)

_SCALERS = tuple(
    f"sklearn.preprocessing._data:{name}"
    for name in ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler")
)
# `fit_transform` calls both.
scaler_fit = Tap("fit", *_SCALERS)
scaler_transform = Tap("transform", *_SCALERS)
