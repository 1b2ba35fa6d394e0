"""Tells rows of data apart, however they are batched and padded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MOST = 300_000  # different rows that are remembered, 8 bytes each; no cage has a tenth of that
# Inputs that say nothing of which row it is, by a part of their names: masks follow from the padding, labels may
# be among the inputs or not.
ASIDE = ("mask", "label", "target", "position", "token_type")


class Rows:
    """The rows that a model was given.

    Attributes:
        digests: of the different ones, 64 bits each.
        count: of all, repeated ones each time.
    """

    def __init__(self) -> None:
        self.digests: set[int] = set()
        self.count = 0

    def add(self, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        """Add a batch: arrays with one entry per row in their first dimension, int or float.

        Zeros at the end of a row of whole numbers are padding, and make no other row of it.
        """
        arrays = [array for array in arrays if array.ndim and array.dtype.kind in "iufSU"]
        if not arrays:
            return
        size = min(len(array) for array in arrays)
        self.count += size
        if len(self.digests) >= MOST:
            return
        for row in range(size):
            digest = hashlib.blake2b(digest_size=8)
            for array in arrays:
                digest.update(_bytes(array[row]))
            self.digests.add(int.from_bytes(digest.digest(), "little"))

    def share_in(self, others: set[int]) -> float:
        """Return which share of the different rows are among others; 0.0 where there are none."""
        return len(self.digests & others) / len(self.digests) if self.digests else 0.0

    def to_array(self) -> np.ndarray[Any, Any]:
        """Return the digests, sorted, as uint64."""
        return np.array(sorted(self.digests), dtype=np.uint64)


def inputs_of(value: Any) -> list[Any]:
    """List the inputs in what a model is called with (tensor, tuple, mapping), but those that are aside."""
    if isinstance(value, Mapping):
        return [
            part
            for name in sorted(value, key=str)
            if not any(word in str(name).lower() for word in ASIDE)
            for part in inputs_of(value[name])
        ]
    if isinstance(value, list | tuple):
        return [part for each in value for part in inputs_of(each)]
    return [value]


def _bytes(row: Any) -> bytes:
    row = np.asarray(row)
    if row.dtype.kind in "iu":
        row = row.astype(np.int64)
        return np.trim_zeros(row, "b").tobytes() if row.ndim == 1 else row.tobytes()
    return row.astype(np.float32).tobytes() if row.dtype.kind == "f" else row.tobytes()
