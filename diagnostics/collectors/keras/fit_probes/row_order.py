"""Reads the labels of arrays given to `fit` in the order of their rows."""

from __future__ import annotations

from collections.abc import Iterable

from diagnostics.collectors.keras.fit_probe import FitProbe, on_tensorflow
from diagnostics.collectors.keras.row_order import class_labels
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
