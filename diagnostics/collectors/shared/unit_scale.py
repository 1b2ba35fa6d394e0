"""Inputs at unit scale, and the losses that are worth computing again with them."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.facts.array import Array

FAR = 1.5  # times the chance level: no rule asks why a loss below it is high


def is_far_above_chance(loss: float, num_classes: int | None) -> bool:
    """Return whether a cross entropy over so many classes is far above its chance level."""
    return num_classes is not None and num_classes > 1 and FAR * math.log(num_classes) < loss < math.inf


def at_unit_scale(values: Array) -> Array:
    """Divide an input by its root mean square, a table column by column: float32, of the same shape."""
    wide = values.astype(np.float64)
    size = np.sqrt(np.square(wide).mean(axis=0 if wide.ndim == 2 else None))
    return (wide / np.where(size > 0, size, 1.0)).astype(np.float32)
