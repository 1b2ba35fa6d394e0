"""Compares the targets that a row of inputs has each time that it comes in a run. NumPy only.

Rows are chosen by what they hold, not by their place: the same ones are followed through all epochs, and what is
kept of them does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.course import RowLedger

CHUNK = 2**12  # rows that are turned into numbers at a time
FEATURES = 64  # of an input, and of a target, evenly over it; the same places each time
FOLLOWED = 2048  # rows; of more, every second is given up, chosen by its contents
TIMES = 8  # that a row is compared
AT_ONCE = 512  # rows of a batch; of more, those chosen by their contents
ENOUGH = 4096  # comparisons
EACH = 128  # batches of a run that are all taken; then every second, and half as many of twice as many
KNOWN = 2**16  # different targets that are remembered
APART = 1e-2  # of the targets' size: closer ones are equal, as where a gradient tells them
GRID = 1e5  # steps of the targets' size, to find a target among those of other rows
FRACTIONS = 0.5  # of the numbers of a row; rows with fewer, as of categories, repeat by nature
TOKENS = 8  # in a row of ids, likewise; as many fractions are enough, as in an image with a blank border
EXPECTED = 3.0  # rows that came twice in an epoch, if rows repeated by nature: none at all is then no chance
TWICE = 0.1  # of these may come all the same: a few rows of most collections are there twice
PLACES, MEASURED = 4, 0.9  # of a row; different values there, as a share of the different rows: a measurement's
COUNTED = 4096  # different rows of which these values are counted
NEIGHBOURS, BATCHES = 32, 64  # rows of a batch among which neighbours are looked for, and batches
ORDERS = 16  # random ones, to know how much changes if targets are dealt out again


class RowMemory:
    """Takes batches of rows with their targets, in the order of the run."""

    def __init__(self) -> None:
        self._batches = 0
        self._stride = 1
        self._first: dict[int, Array] = {}
        self._epoch: set[int] = set()
        self._earlier = 0.0  # rows followed in epochs before
        self._twice: set[int] = set()  # rows that came twice in one epoch, or pass: they repeat by nature
        self._within, self._expected = 0, 0.0  # such repeats; and how many, if all repeated by nature
        self._again: dict[int, list[tuple[float, bool, int]]] = {}
        self._seen = 0
        # Of a batch: how far the targets of neighbours are apart, and of any two rows.
        self._near: list[tuple[float, float]] = []
        self._known: dict[int, int] = {}  # by target: the first row that had it
        self._different: set[int] = set()  # rows, and the values that they have at a few places
        self._values: list[set[float]] = [set() for _ in range(PLACES)]
        self._size = 1.0
        self._shape: tuple[int, ...] | None = None

    def epoch_begins(self) -> None:
        """Note that the rows start over."""
        self._earlier += len(self._epoch)
        self._epoch.clear()

    def wants(self) -> bool:
        """Count a batch of the run, and return whether it is to be taken: of a long run few are."""
        number = self._batches
        self._batches += 1
        return self._seen < ENOUGH and number % (1 << (number // EACH).bit_length()) == 0

    @np.errstate(all="ignore")
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
        if len(self._near) < BATCHES and n > 2:
            self._near.append(_apart([part[:NEIGHBOURS] for part in inputs], wanted[:NEIGHBOURS]))
        if len(self._different) < COUNTED:
            self._count_values(inputs, keys)
        steps = np.clip(np.round(wanted / self._size * GRID), -(2.0**62), 2.0**62)
        named = _keys(steps.astype(np.int64).view(np.uint32).reshape(n, -1))
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
            self._epoch = {key for key in self._epoch if key % self._stride == 0}
            self._earlier /= 2

    def _count_values(self, inputs: Sequence[Array], keys: Array) -> None:
        self._different.update(keys[:AT_ONCE].tolist())
        measured = next((_spread(part) for part in inputs if part.dtype.kind == "f"), np.empty((0, 1)))
        places = measured[:AT_ONCE, :: max(1, measured.shape[1] // PLACES)]
        for known, values in zip(self._values, places.T.tolist(), strict=False):
            known.update(values)

    def _are_measured(self) -> bool:
        """Whether at some place each row has a value of its own: equal rows are then the same, drawn again."""
        return max(map(len, self._values)) >= MEASURED * len(self._different)

    def _see(self, key: int, name: int, target: Array) -> None:
        first = self._first.get(key)
        if key in self._epoch:
            self._twice.add(key)
            self._within += 1
        elif first is not None:
            self._expected += len(self._epoch) / max(self._earlier, 1)
        self._epoch.add(key)
        if first is None:
            self._first[key] = target.copy()  # a view would keep its whole batch
            return
        seen = self._again.setdefault(key, [])
        if len(seen) < TIMES:
            seen.append((float(np.square(first - target).mean()), self._differ(first, target), name))
            self._seen += 1

    def _differ(self, one: Array, other: Array) -> bool:
        return bool(np.abs(one - other).max(initial=0) > APART * self._size)

    @np.errstate(all="ignore")
    def facts(self) -> RowLedger | None:
        """Return what was seen of rows that came again; None if there were none, or if rows repeat by nature.

        Rows of a few categories come again in the same epoch as often as in another: the share of an epoch in the
        run says how many should have, if the run has epochs. So do measurements that are drawn with replacement,
        which do not repeat.
        """
        drawn = self._are_measured()
        kept = [key for key in self._again if key in self._first and (drawn or key not in self._twice)]
        seen = [(key, *again) for key in kept for again in self._again[key]]
        one_by_one = drawn and not self._earlier  # as by train_on_batch, which knows no epochs
        if not seen or (self._expected < EXPECTED and not one_by_one):
            return None
        if self._within > TWICE * self._expected and not drawn:
            return None
        changed = [(key, name) for key, _, differs, name in seen if differs]
        others = sum(self._known.get(name, key) != key for key, name in changed)
        square, chance = self._dealt_again(np.stack([self._first[key] for key in kept]))
        apart = float(np.mean([change for _, change, _, _ in seen])) / square if square else 0.0
        near, far = np.sum(self._near, axis=0).tolist() if self._near else (0.0, 0.0)
        return RowLedger(len(kept), len(seen), len(changed), others, chance, apart, near / far if far else 0.0)

    def _dealt_again(self, targets: Array) -> tuple[float, float]:
        """Compare targets (rows, …) with those of other rows, in a few random orders.

        Returns:
            The mean square of their difference, and the share of those that differ; 0 for a single row.
        """
        rng, squares, differ = np.random.default_rng(0), list[Array](), list[Array]()
        for order in (rng.permutation(len(targets)) for _ in range(ORDERS)):
            moved = order != np.arange(len(targets))
            apart = targets[moved] - targets[order[moved]]
            squares.append(np.square(apart).mean(axis=1))
            differ.append(np.abs(apart).max(axis=1, initial=0) > APART * self._size)
        counted = sum(map(len, squares))
        if not counted:
            return 0.0, 0.0
        return float(np.concatenate(squares).mean()), float(np.concatenate(differ).mean())


def row_keys(inputs: Sequence[Array]) -> Array | None:
    """Return a number for each row (n,), equal for equal rows; None where rows repeat by nature."""
    if not inputs or any(part.dtype.kind not in "fiu" for part in inputs):
        return None
    if not any(_seldom_repeats(part[:CHUNK]) for part in inputs):
        return None
    chunks = range(0, len(inputs[0]), CHUNK)
    bits = ([_bits(part[start : start + CHUNK]) for part in inputs] for start in chunks)
    return np.concatenate([_keys(np.concatenate(parts, axis=1)) for parts in bits])


def _apart(inputs: Sequence[Array], targets: Array) -> tuple[float, float]:
    """Return the mean square of the difference between the targets of nearest neighbours, and of any two rows."""
    n = len(targets)
    distances = np.zeros((n, n))
    for part in inputs:
        flat = _spread(part).astype(np.float64)
        if part.dtype.kind == "f":
            flat = (flat - flat.mean(axis=0)) / (flat.std(axis=0) + 1e-12)
            squares = np.square(flat).sum(axis=1)
            distances += squares[:, None] + squares - 2 * flat @ flat.T
        else:
            distances += (flat[:, None] != flat).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    near = float(np.square(targets - targets[distances.argmin(axis=1)]).mean())
    return near, float(2 * targets.var(axis=0, ddof=1).mean())


def _seldom_repeats(part: Array) -> bool:
    """Whether rows of this kind are usually all different."""
    flat = part[:NEIGHBOURS].reshape(len(part[:NEIGHBOURS]), -1)
    if part.dtype.kind == "f":
        fractions = float((flat != np.round(flat)).mean())
        return flat.shape[1] > 1 and (fractions > FRACTIONS or fractions * flat.shape[1] >= TOKENS)
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
    keys ^= keys >> np.uint64(31)  # the lowest bits, by which rows are chosen, must depend on all
    return keys
