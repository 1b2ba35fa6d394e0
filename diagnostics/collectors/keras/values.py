"""Reads the values of variables, on one device or mirrored on several; keeps those that a step will change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.errors import TrainingStopped
from diagnostics.facts.array import Array

LIMIT = 512 * 2**20  # bytes of weights and of the optimizer's state; what is larger is not kept before a step
JUDGED = 8  # steps that are not finite and are judged at once; the rules may have no objection


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


class StepValues:
    """The values of variables before a step, and the judgement of a step that is not finite.

    Args:
        judge: is called with such a step. If it raises TrainingStopped, the step is taken back.
        current: returns the value of a variable as it is now, not waited for.
    """

    def __init__(self, judge: Callable[[], object], current: Callable[[Any], Any]) -> None:
        self._judge, self._current = judge, current
        self._kept: dict[int, tuple[Any, Any]] = {}
        self._judged = self._nbytes = 0

    @property
    def wants(self) -> bool:
        """Whether another step may be judged."""
        return self._judged < JUDGED

    def clear(self) -> None:
        """Forget the values."""
        self._kept, self._nbytes = {}, 0

    def add(self, variables: Iterable[Any]) -> None:
        """Keep the values of variables whose values are not kept yet, up to `LIMIT`."""
        new = {id(variable): variable for variable in variables if id(variable) not in self._kept}
        nbytes = sum(int(np.prod(v.shape)) * _itemsize(v.dtype) for v in new.values())
        if self._nbytes + nbytes <= LIMIT:
            self._nbytes += nbytes
            self._kept |= {number: (variable, self._current(variable)) for number, variable in new.items()}

    def judge(self) -> None:
        """Have a step judged. Raises TrainingStopped, after the step was taken back."""
        self._judged += 1
        try:
            self._judge()
        except TrainingStopped:
            with own_run():
                for variable, value in self._kept.values():
                    variable.assign(value)
            raise


def _itemsize(dtype: Any) -> int:
    """Return the bytes of a number; `dtype`: a name, or one of TensorFlow."""
    return int(getattr(dtype, "size", None) or np.dtype(dtype).itemsize)
