"""Compares the targets that a row of inputs has each time that it comes in a run. NumPy only.

Rows are chosen by what they hold, not by their place: the same ones are followed through all epochs, and what is
kept of them does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diagnostics.facts.course import RepeatedRows
from diagnostics.facts.pipeline import Array

FEATURES = 512  # of an input, and of a target, evenly over it; the same places each time
FOLLOWED = 2048  # rows; of more, every second is given up, chosen by its contents
TIMES = 8  # that a row is compared
AT_ONCE = 512  # rows of a batch; of more, those chosen by their contents
ENOUGH = 4096  # comparisons
KNOWN = 2**16  # different targets that are remembered
APART = 1e-2  # of the targets' size: closer ones are equal, as where a gradient tells them
GRID = 1e5  # steps of the targets' size, to find a target among those of other rows
FRACTIONS = 0.5  # of the numbers of a row; rows with fewer, as of categories, repeat by nature
TOKENS = 8  # in a row of ids, likewise


class RowMemory:
    """Takes batches of rows with their targets, in the order of the run."""

    def __init__(self) -> None:
        self._stride = 1
        self._first: dict[int, Array] = {}
        self._epoch: set[int] = set()
        self._twice: set[int] = set()  # rows that came twice in one epoch, or pass: they repeat by nature
        self._again: dict[int, list[tuple[bool, int]]] = {}
        self._seen = 0
        self._known: dict[int, int] = {}  # by target: the first row that had it
        self._size = 1.0
        self._shape: tuple[int, ...] | None = None

    def epoch_begins(self) -> None:
        """Note that the rows begin anew."""
        self._epoch.clear()

    def take(self, inputs: Sequence[Array], targets: Array) -> None:
        """Take the rows of a batch.

        Args:
            inputs: (n, …) each, all that the model gets of a row.
            targets: (n, …).
        """
        n = len(targets)
        if (
            self._seen >= ENOUGH
            or not n
            or not inputs
            or any(len(part) != n or part.dtype.kind not in "fiu" for part in inputs)
        ):
            return
        if not any(_seldom_repeats(part) for part in inputs):
            return
        keys = _keys(np.concatenate([_bits(part) for part in inputs], axis=1))
        wanted = _spread(targets).astype(np.float64)
        if self._shape is None:
            self._shape, self._size = wanted.shape[1:], float(np.abs(wanted).max(initial=0)) or 1.0
        if wanted.shape[1:] != self._shape or not np.isfinite(wanted).all():
            return
        named = _keys(np.round(wanted / self._size * GRID).astype(np.int64).view(np.uint32).reshape(n, -1))
        if len(self._known) < KNOWN:
            for key, name in zip(keys[:AT_ONCE].tolist(), named[:AT_ONCE].tolist(), strict=True):
                self._known.setdefault(name, key)
        while n > AT_ONCE * self._stride:
            self._stride *= 2
        chosen = keys % np.uint64(self._stride) == 0
        for key, name, target in zip(keys[chosen].tolist(), named[chosen].tolist(), wanted[chosen], strict=True):
            self._see(key, name, target)
        while len(self._first) > FOLLOWED:
            self._stride *= 2
            self._first = {key: one for key, one in self._first.items() if key % self._stride == 0}

    def _see(self, key: int, name: int, target: Array) -> None:
        if key in self._epoch:
            self._twice.add(key)
        self._epoch.add(key)
        first = self._first.get(key)
        if first is None:
            self._first[key] = target.copy()  # a view would keep its whole batch
            return
        seen = self._again.setdefault(key, [])
        if len(seen) < TIMES:
            seen.append((bool(np.abs(first - target).max() > APART * self._size), name))
            self._seen += 1

    def facts(self) -> RepeatedRows | None:
        """Return what was seen of rows that came again; None if there were none."""
        kept = [key for key in self._again if key in self._first and key not in self._twice]
        seen = [(key, changed, name) for key in kept for changed, name in self._again[key]]
        if not seen:
            return None
        changed = [(key, name) for key, different, name in seen if different]
        others = sum(self._known.get(name, key) != key for key, name in changed)
        targets = np.stack([self._first[key] for key in kept])
        order = np.random.default_rng(0).permutation(len(targets))
        moved = order != np.arange(len(order))
        dealt = np.abs(targets - targets[order]).max(axis=1) > APART * self._size
        chance = float(dealt[moved].mean()) if moved.any() else 0.0
        return RepeatedRows(len(kept), len(seen), len(changed), others, chance)


def _seldom_repeats(part: Array) -> bool:
    """Whether rows of this kind are usually all different."""
    flat = _spread(part)
    if part.dtype.kind == "f":
        return flat.shape[1] > 1 and bool((flat != np.round(flat)).mean() > FRACTIONS)
    return bool(flat.shape[1] >= TOKENS)


def _spread(part: Array) -> Array:
    flat: Array = part.reshape(len(part), -1)
    return flat[:, :: max(1, -(-flat.shape[1] // FEATURES))]


def _bits(part: Array) -> Array:
    """Return the numbers of each row as unsigned integers (n, …)."""
    flat = np.ascontiguousarray(_spread(part), np.float32 if part.dtype.kind == "f" else np.int64)
    return flat.view(np.uint32).reshape(len(part), -1)


def _keys(bits: Array) -> Array:
    """Return a number of 64 bits for each row (n,), equal for equal rows."""
    factors = np.random.default_rng(1).integers(1, 2**63, bits.shape[1], dtype=np.uint64) | np.uint64(1)
    keys: Array = (bits.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    keys ^= keys >> np.uint64(31)  # the lowest bits, by which rows are chosen, shall depend on all
    return keys
