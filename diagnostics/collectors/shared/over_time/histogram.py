"""The histogram of one layer's values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.over_time import QUANTILES, Histogram

BINS = 32
VALUES = 2**16  # of a layer that are read, evenly spaced: the quantiles of more differ in the third digit
LAYERS = 64  # the first ones of a larger model: a page with more is not read


def stride_for(size: int) -> int:
    """Return which of a layer's values are read: every so many."""
    return -(-size // VALUES)


def histogram_of(parts: Sequence[Array], size: int) -> Histogram | None:
    """Count the values that were read of a layer.

    Args:
        parts: 1-D, of any float dtype.
        size: values that the layer has.

    Returns:
        None if no value is finite.
    """
    read = np.concatenate([part.astype(np.float64) for part in parts])
    finite = read[np.isfinite(read)]
    if not len(finite):
        return None
    low, high = float(finite.min()), float(finite.max())
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # all alike, as a bias before the first step
        width = 0.5 * max(abs(low), 1e-3)
        low, high = low - width, high + width
    counts, edges = np.histogram(finite, BINS, (low, high))
    return Histogram(
        edges=edges,
        counts=counts,
        quantiles=np.quantile(finite, QUANTILES),
        total=float(finite.sum()),
        squares=float(np.square(finite).sum()),
        not_finite=len(read) - len(finite),
        share=len(read) / size,
    )
