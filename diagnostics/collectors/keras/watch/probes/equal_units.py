"""Looks for kernels whose units are copies of each other before the first step, and still are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.values import current
from diagnostics.collectors.keras.watch.watch_probe import WatchProbe
from diagnostics.collectors.keras.weights import Weights
from diagnostics.collectors.shared.equal_units import LIMIT, EqualUnits, Read
from diagnostics.facts.array import Array
from diagnostics.facts.layers import EqualUnitsFacts


class EqualKernels(WatchProbe):
    """Compares the units of each kernel."""

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._units = EqualUnits()

    def on_weights(self, weights: Weights) -> None:
        """See `WatchProbe.on_weights`."""
        kernels = zip(weights.names, weights.variables, strict=False)
        self._units.begin({name: units_of(kernel) for name, kernel in kernels})

    def facts(self) -> Iterable[EqualUnitsFacts | None]:
        """Return those that are equal now."""
        return (self._units.facts(),)


def units_of(kernel: Any) -> Read | None:
    """Return what reads the units of a kernel (..., units), a variable or a tensor; None if it has none."""
    shape, value = tuple(kernel.shape), current(kernel)
    if len(shape) < 2 or shape[-1] < 2 or not 0 < np.prod(shape) <= LIMIT or not value.dtype.is_floating:
        return None

    def read(count: int | None) -> Array:
        return np.moveaxis(np.asarray(tf.cast(current(kernel)[..., :count], tf.float32)), -1, 0)

    return read
