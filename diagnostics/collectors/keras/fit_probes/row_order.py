"""Reads the labels of arrays given to `fit` in the order of their rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from diagnostics.collectors.keras.fit_probes import FitProbe, on_tensorflow
from diagnostics.collectors.keras.losses import as_written
from diagnostics.facts.array import Array
from diagnostics.facts.data import RowOrder

BATCH = 32  # rows, where `fit` is given no batch size


class OrderOfLabels(FitProbe):
    """Describes the order of the rows, once the `fit` has ended."""

    def facts(self) -> Iterable[RowOrder]:
        """Return nothing where y holds no class labels in an array."""
        model, given = self.subject.model, self.subject.given
        labels = class_labels(model, given.get("y")) if on_tensorflow() else None
        if labels is not None:
            kept = int(len(labels) * (1 - float(given.get("validation_split") or 0)))
            shuffled = bool(given.get("shuffle", True))
            yield RowOrder(labels, len(labels) - kept, shuffled, int(given.get("batch_size") or BATCH))


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
