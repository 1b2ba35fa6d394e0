"""Counts the rows of a `fit` that weigh nothing, in batches from all over the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import as_array, unpack
from diagnostics.collectors.keras.watch.probes import WatchProbe
from diagnostics.collectors.shared.pipeline import StageFailed
from diagnostics.facts.data import SampleWeights

CLASSES = 20  # more are numbers of another kind
BATCHES = 32  # that are kept, evenly over the run: of more, every second is dropped


class RowWeights(WatchProbe):
    """Looks at batches one by one."""

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._taken, self._stride = 0, 1
        self._seen: list[tuple[int, int]] = []  # of each batch looked at: rows, and those that weigh 0
        self._labels: list[dict[int, tuple[int, int]] | None] = []  # the same by class; None: there is none

    def on_batch(self, batch: Any) -> None:
        """Look at a batch, if it is one of those that are kept."""
        self._taken += 1
        if (self._taken - 1) % self._stride:
            return
        try:
            _, targets, weights = unpack(batch)
        except StageFailed:  # parts that only the model's own step understands
            return
        if weights is None:
            return
        self._seen.append(_weighed(weights))
        self._labels.append(_weighed_by_label(targets, weights))
        if len(self._seen) >= BATCHES:
            self._seen, self._labels = self._seen[::2], self._labels[::2]
            self._stride *= 2

    def facts(self) -> Iterable[SampleWeights]:
        """Return what the sample weights are; nothing if there are none."""
        if not self._seen:
            return
        rows, zero = (sum(column) for column in zip(*self._seen, strict=True))
        blank = sum(rows == zero for rows, zero in self._seen)
        by_label: dict[int, tuple[int, int]] = {}
        known = [labels for labels in self._labels if labels is not None]
        for labels in known if len(known) == len(self._labels) else ():
            for label, (count, without) in labels.items():
                before = by_label.get(label, (0, 0))
                by_label[label] = before[0] + count, before[1] + without
        yield SampleWeights(len(self._seen), blank, rows, zero, by_label if len(by_label) <= CLASSES else {})


def _weighed(weights: Any) -> tuple[int, int]:
    """Return how many rows a batch has, and how many of them weigh 0 in every output."""
    given = map(as_array, keras.tree.flatten(weights))
    arrays = [array for array in given if array is not None and array.ndim]
    size = min(map(len, arrays), default=0)
    zero = [(array[:size].reshape(size, -1) == 0).all(axis=1) for array in arrays] if size else []
    return size, int(np.logical_and.reduce(zero).sum()) if zero else 0


def _weighed_by_label(targets: Any, weights: Any) -> dict[int, tuple[int, int]] | None:
    """Return the same of each class; None unless each row has one whole number, and one weight."""
    labels, given = as_array(targets), as_array(weights)
    if (
        labels is None
        or given is None
        or given.ndim == 0
        or labels.size != given.size
        or labels.size != len(labels)
    ):
        return None
    labels, zero = labels.reshape(-1), given.reshape(-1) == 0
    if not np.isfinite(labels).all() or (labels != np.round(labels)).any():
        return None
    classes = np.unique(labels)
    if len(classes) > CLASSES:
        return None
    return {int(label): (int((labels == label).sum()), int(zero[labels == label].sum())) for label in classes}
