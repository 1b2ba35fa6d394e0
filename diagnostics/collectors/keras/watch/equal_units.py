"""Reads the units of a kernel, which its last axis counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.values import current
from diagnostics.collectors.shared.equal_units import LIMIT, Read
from diagnostics.facts.array import Array


def units_of(kernel: Any) -> Read | None:
    """Return what reads the units of a kernel (..., units), a variable or a tensor; None if it has none."""
    shape, value = tuple(kernel.shape), current(kernel)
    if len(shape) < 2 or shape[-1] < 2 or not 0 < np.prod(shape) <= LIMIT or not value.dtype.is_floating:
        return None

    def read(count: int | None) -> Array:
        return np.moveaxis(np.asarray(tf.cast(current(kernel)[..., :count], tf.float32)), -1, 0)

    return read
