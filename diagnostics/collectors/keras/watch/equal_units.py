"""Looks for kernels whose units are copies of each other before the first step of a `fit`, and still are."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagnostics.collectors.keras.values import current
from diagnostics.collectors.keras.weights import Weights
from diagnostics.collectors.shared.overfit_plan import ALIKE
from diagnostics.facts.array import Array
from diagnostics.facts.layers import EqualUnitsFacts

LIMIT = 2**26  # numbers of a kernel; a larger one is not compared


class EqualUnits:
    """Compares the units of each trainable kernel (..., units) before the first step and on request.

    Memory: one unit of each kernel whose units are equal at the start.
    """

    def __init__(self) -> None:
        self._started: dict[str, tuple[Any, Array]] | None = None

    def begin(self, weights: Weights) -> None:
        """Remember which kernels have equal units."""
        trainable = zip(weights.names, weights.variables, strict=False)
        self._started = {
            name: (variable, np.array(current(variable)[..., 0]))
            for name, variable in trainable
            if units_alike(variable)
        }

    def facts(self) -> EqualUnitsFacts | None:
        """Compare again; None before `begin`."""
        if self._started is None:
            return None
        return EqualUnitsFacts(
            tuple(
                name
                for name, (variable, first) in self._started.items()
                if not np.array_equal(current(variable)[..., 0], first) and units_alike(variable)
            )
        )


def units_alike(variable: Any) -> bool:
    """Whether all units of a kernel are copies of each other, zeros included."""
    shape = tuple(variable.shape)
    if len(shape) < 2 or shape[-1] < 2 or not 0 < np.prod(shape) <= LIMIT:
        return False
    value = current(variable)
    if not value.dtype.is_floating or not _alike(value[..., :2]):  # nearly all kernels end here
        return False
    return _alike(value)


def _alike(value: Any) -> bool:
    units = np.asarray(value).astype(np.float64)
    return bool(np.abs(units - units[..., :1]).max() <= ALIKE * np.abs(units).max())
