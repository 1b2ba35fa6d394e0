"""Recognises rows whose columns were scaled differently, as by a scaler fitted in each fold. NumPy only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from diagnostics.facts.array import Array

MAX_ROWS, MAX_COLUMNS = 4096, 32  # that are kept; of wider rows columns that are spread evenly
MIN_COLUMNS = 4  # that vary: rows with fewer are close to others by chance
MATCHED = 256  # rows by which a scale is found
CLOSEST = 0.25  # of these, whose nearest neighbours are taken to be the same rows
EXACT = 1e-3  # standard deviations of a column: the same number but for rounding
SHARED = 0.3  # of the rows that are the same in the scale found


class RescaledRows:
    """Rows that were trained on, in the scale of the first ones, and the scale of the latest ones."""

    def __init__(self, inputs: Sequence[Array], keys: Array) -> None:
        """Take the first rows, with a number for each."""
        rows = _table(inputs)
        self._rows: Array | None = None if rows is None else rows.copy()
        self._keys = keys
        self._scale: tuple[Array, Array] | None = None

    def fitted(self, inputs: Sequence[Array], keys: Array) -> Array:
        """Take the rows of another training; return their numbers, those of known rows if they are the same."""
        rows = _table(inputs)
        if self._rows is None or rows is None or rows.shape[1] != self._rows.shape[1]:
            self._scale = None
            return keys
        again = np.isin(keys, self._keys).mean() >= SHARED
        self._scale = None if again else _scale(rows, self._rows)
        keys = self.known(inputs, keys)
        new = ~np.isin(keys, self._keys)
        new[np.cumsum(new) > MAX_ROWS - len(self._rows)] = False
        scaled = rows if self._scale is None else rows * self._scale[0] + self._scale[1]
        if again or self._scale is not None:
            self._rows = np.concatenate([self._rows, scaled[new].astype(np.float32)])
            self._keys = np.concatenate([self._keys, keys[new]])
        return keys

    def known(self, inputs: Sequence[Array], keys: Array) -> Array:
        """Return the numbers of rows in the latest scale, those of known rows if they are the same."""
        rows = None if self._scale is None else _table(inputs)
        if self._scale is None or self._rows is None or rows is None or rows.shape[1] != self._rows.shape[1]:
            return keys
        scaled, spread = rows * self._scale[0] + self._scale[1], self._rows.std(axis=0) + 1e-12
        nearest = np.concatenate([place for place, _ in _nearest(scaled / spread, self._rows / spread)])
        same = (np.abs(scaled - self._rows[nearest]) / spread).max(axis=1) < EXACT
        return np.where(same, self._keys[nearest], keys)


def _table(inputs: Sequence[Array]) -> Array | None:
    """Return the numbers of rows (n, columns); None if they are too many, or no floats."""
    if not inputs or any(part.dtype.kind != "f" for part in inputs) or len(inputs[0]) > MAX_ROWS:
        return None
    flat = np.concatenate([part.reshape(len(part), -1) for part in inputs], axis=1)
    flat = flat[:, :: -(-flat.shape[1] // MAX_COLUMNS)].astype(np.float32)
    return flat if np.isfinite(flat).all() and (flat.std(axis=0) > 0).sum() >= MIN_COLUMNS else None


def _scale(rows: Array, known: Array) -> tuple[Array, Array] | None:
    """Return factor and offset of each column that turn rows into known ones; None if too few are the same."""
    part = rows[np.unique(np.linspace(0, len(rows) - 1, MATCHED).astype(int))].astype(np.float64)
    spread, wanted = rows.std(axis=0) + 1e-12, known.std(axis=0) + 1e-12
    found = _nearest((part - rows.mean(axis=0)) / spread, (known - known.mean(axis=0)) / wanted)
    nearest, distances = (np.concatenate(one) for one in zip(*found, strict=True))
    close = distances <= np.quantile(distances, CLOSEST)
    given, target = part[close], known[nearest[close]].astype(np.float64)
    apart = given - given.mean(axis=0)
    factor = (apart * target).sum(axis=0) / (np.square(apart).sum(axis=0) + 1e-12)
    offset = target.mean(axis=0) - factor * given.mean(axis=0)
    same = (np.abs(part * factor + offset - known[nearest]) / wanted).max(axis=1) < EXACT
    return (factor.astype(np.float32), offset.astype(np.float32)) if same.mean() >= SHARED else None


def _nearest(rows: Array, known: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the places of the nearest known rows and the squares of their distances, for some rows at a time."""
    squares = np.square(known).sum(axis=1)
    for start in range(0, len(rows), MATCHED):
        some = rows[start : start + MATCHED]
        distances = squares - 2 * some @ known.T
        places = distances.argmin(axis=1)
        yield places, distances[np.arange(len(some)), places] + np.square(some).sum(axis=1)
