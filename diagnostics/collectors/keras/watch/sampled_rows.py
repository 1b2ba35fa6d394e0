"""Keeps rows of a `fit` with their targets, where its data cannot be read without side effects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import as_array, unpack
from diagnostics.collectors.keras.data import KEPT_BYTES, rows_of_loss
from diagnostics.collectors.shared.learnability import FEATURES, KeptRows
from diagnostics.collectors.shared.pipeline import StageFailed
from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import LossKind

BATCHES, ROWS = 64, 16  # that are kept, evenly over the run: of more, every second is dropped; and of each
DRIFT = 4.0  # standard errors that the targets of both halves of the run may be apart


class SampledRows:
    """Takes the batches of a run one by one. What it keeps does not grow with the run."""

    def __init__(self) -> None:
        self._taken, self._stride = 0, 1
        self._kept: list[tuple[Array, ...]] = []  # inputs and targets of each batch
        self._structure: Any = None  # of inputs and targets, if there are several targets
        self._closed = False

    def take(self, batch: Any) -> None:
        """Copy rows of a batch, as `train_step` gets it, if it is one of those that are kept."""
        self._taken += 1
        if self._closed or (self._taken - 1) % self._stride:
            return
        rows: tuple[Array, ...] | None = _rows_of(batch)
        if rows is None and (several := _rows_of_several(batch)) is not None:
            rows, self._structure = several
        if rows is None or (self._kept and _shapes(rows) != _shapes(self._kept[0])):
            self._closed, self._kept = True, []
            return
        self._kept.append(rows)
        while len(self._kept) > BATCHES or sum(part.nbytes for parts in self._kept for part in parts) > KEPT_BYTES:
            self._kept = self._kept[::2]
            self._stride *= 2

    def rows(self, kind: LossKind, num_classes: int | None) -> KeptRows | None:
        """Return the rows; None if there are none, or if the targets change in the course of the run.

        Args:
            kind: of the loss.
            num_classes: that it tells apart; None where its targets name no classes.
        """
        if len(self._kept) < 2 or self._structure is not None or self._drifts(1):
            return None
        inputs, targets = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        return rows_of_loss(kind, inputs, targets, num_classes)

    def batches(self) -> Iterator[Any]:
        """Yield inputs and several targets, evenly from the whole run; nothing if the targets change."""
        if len(self._kept) < 2 or self._structure is None:
            return
        first_target = len(keras.tree.flatten(self._structure[0]))
        if any(map(self._drifts, range(first_target, len(self._kept[0])))):
            return
        for parts in (*self._kept[::2], *self._kept[1::2]):
            yield keras.tree.pack_sequence_as(self._structure, list(parts))

    def _drifts(self, place: int) -> bool:
        """Return whether the numbers at one place of the rows change in the course of the run."""
        columns = [parts[place].reshape(len(parts[place]), -1) for parts in self._kept]
        half = sum(map(len, columns[: len(columns) // 2]))
        values = np.concatenate(columns).astype(np.float64)
        early, late = values[:half], values[half:]
        error = np.sqrt(early.var(axis=0) / max(1, len(early)) + late.var(axis=0) / max(1, len(late)))
        return bool((np.abs(early.mean(axis=0) - late.mean(axis=0)) > DRIFT * error + 1e-12).any())


def _shapes(rows: tuple[Array, ...]) -> list[tuple[int, ...]]:
    return [part.shape[1:] for part in rows]


def _rows_of_several(batch: Any) -> tuple[tuple[Array, ...], Any] | None:
    """Return some rows of inputs and several targets, and their structure; None if unclear."""
    try:
        x, y, weights = unpack(batch)
    except StageFailed:
        return None
    if weights is not None or not isinstance(y, dict | list | tuple):
        return None
    leaves = [as_array(leaf) for leaf in keras.tree.flatten((x, y))]
    numbers = [
        leaf[:ROWS].copy() for leaf in leaves if leaf is not None and leaf.ndim and leaf.dtype.kind in "fiub"
    ]
    if len(numbers) < len(leaves) or len({len(leaf) for leaf in numbers}) != 1:
        return None
    return tuple(numbers), keras.tree.map_structure(lambda _: 0, (x, y))


def _rows_of(batch: Any) -> tuple[Array, Array] | None:
    """Return some rows of the inputs and their targets (n, outputs); None if unclear.

    Sequences (n, length, features) are kept as they are, of other wide rows every k-th number.
    """
    try:
        x, y, weights = unpack(batch)
    except StageFailed:  # parts that only the model's own step understands
        return None
    if weights is not None or isinstance(x, dict | list | tuple) or isinstance(y, dict | list | tuple):
        return None
    x, y = as_array(x), as_array(y)
    if x is None or y is None or not x.ndim or not y.ndim or len(x) != len(y):
        return None
    x, y = x[:ROWS], y[:ROWS].reshape(min(len(y), ROWS), -1)
    if x.ndim != 3:
        x = x.reshape(len(x), -1)
    if x.dtype.kind == "f" and x.ndim == 2:
        x = x[:, :: max(1, -(-x.shape[1] // FEATURES))]
    return x.copy(), y.astype(np.float64)
