"""Keeps what a step will change, so that the step can be taken back if it ends the training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.errors import TrainingStopped

LIMIT = 512 * 2**20  # bytes of weights and of the optimizer's state; what is larger is not kept before a step
JUDGED = 8  # steps that are not finite and are judged at once; the rules may have no objection


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
