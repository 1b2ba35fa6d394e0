"""Reads class labels from arrays that are given to `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagnostics.collectors.keras.losses import as_written
from diagnostics.facts.array import Array


def class_labels(model: Any, y: Any) -> Array | None:
    """Return the class of each row, int64 (rows,); None where y holds no class labels in an array.

    Args:
        model: compiled; its loss tells whether integers are classes.
        y: integers (rows,) or (rows, 1), or one-hot (rows, classes).
    """
    if not isinstance(y, np.ndarray) or "crossentropy" not in str(as_written(model.loss)).lower().replace("_", ""):
        return None
    if y.ndim == 2 and y.shape[1] > 1 and bool(((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all()):
        y = y.argmax(axis=1)
    labels = y.reshape(-1)
    if len(labels) != len(y) or not len(y) or (labels.dtype.kind == "f" and not (labels == labels.round()).all()):
        return None
    return labels.astype(np.int64) if labels.dtype.kind in "iuf" else None
