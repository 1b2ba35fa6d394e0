"""Reads the values of variables: of Keras or of TensorFlow, on one device or mirrored on several."""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np

from diagnostics.facts.array import Array


def array_of(variable: Any) -> Array:
    """Copy the value of a variable, or of a tensor, to NumPy."""
    if keras.backend.backend() != "tensorflow":
        return np.array(keras.ops.convert_to_numpy(variable))
    value = current(variable) if isinstance(variable, keras.Variable) else variable
    return np.array(np.asarray(value))  # to copy at once makes NumPy warn of tensors without a value


def number_of(variable: Any) -> float:
    """Return the value of a variable or a tensor of one number."""
    return float(array_of(variable).reshape(()))


def current(variable: Any) -> Any:
    """Return the value of a variable on TensorFlow, not waited for; quicker than a compiled function is."""
    tf: Any = sys.modules["tensorflow"]  # there, where a variable of it is
    inner = variable.value if isinstance(variable, keras.Variable) else variable
    if not isinstance(inner, tf.Variable):  # its value is replaced by a tensor, for a while
        return inner
    if isinstance(inner, tf.distribute.DistributedValues):  # the sum of the devices' parts, for a metric
        return inner.read_value()
    return tf.raw_ops.ReadVariableOp(resource=inner.handle, dtype=inner.dtype)
