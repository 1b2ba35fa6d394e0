"""Takes recorded batches apart into rows, and holds some of them out. NumPy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from diagnostics.facts.array import Array

HELD_OUT = 0.25  # of the rows
FEWEST = 24  # rows held out: a loss of fewer may be low by chance
MOST_HELD_OUT = 1024


@dataclass(frozen=True)
class Rows:
    """The rows of recorded batches, each once.

    Attributes:
        inputs: by path, arrays (n, ...).
        target: (n, ...).
        batches: integers (k,) each, the rows of a batch that are trained on.
        held_out: integers (m,), the rows that are not.
        first: integers (k,), all rows of the first batch, in its order.
    """

    inputs: Mapping[str, Array]
    target: Array
    batches: tuple[Array, ...]
    held_out: Array
    first: Array

    @property
    def trained(self) -> Array:
        """The rows that are trained on, rising."""
        return np.unique(np.concatenate(self.batches))

    def shuffled(self) -> Rows:
        """Deal the trained rows out to batches of the same sizes, at random."""
        generator, there = np.random.default_rng(0), np.concatenate(self.batches)
        dealt = generator.permutation(there)
        ends = np.cumsum([len(batch) for batch in self.batches])
        return replace(self, batches=tuple(np.split(dealt, ends[:-1])))


def rows_of(batches: Sequence[tuple[Mapping[str, Array], Array]]) -> Rows | str:
    """Take batches apart, or return why that cannot be done.

    Args:
        batches: inputs by path, each (n, ...), and the target (n, ...). `n` may differ from batch to batch.
    """
    if not batches:
        return "no batch was kept"
    paths = sorted(batches[0][0])
    if not paths or any(sorted(inputs) != paths for inputs, _ in batches):
        return "its batches differ in their inputs"
    number: dict[bytes, int] = {}
    kept: list[tuple[int, int]] = []  # batch and row of each row's first time
    of_batches: list[Array] = []
    for which, (inputs, target) in enumerate(batches):
        parts = [np.ascontiguousarray(inputs[path]) for path in paths] + [np.ascontiguousarray(target)]
        if any(part.ndim < 1 or len(part) != len(target) for part in parts):
            return "an input has no row for each target"
        if any(
            part.shape[1:] != first.shape[1:] for part, first in zip(parts, _first(batches, paths), strict=True)
        ):
            return "the rows of its batches differ in their shapes"
        rows = []
        for row in range(len(target)):
            key = b"".join(part[row].tobytes() for part in parts)
            if key not in number:
                number[key] = len(kept)
                kept.append((which, row))
            rows.append(number[key])
        of_batches.append(np.array(rows))
    held_out = np.random.default_rng(0).permutation(len(kept))[: min(int(HELD_OUT * len(kept)), MOST_HELD_OUT)]
    if len(held_out) < FEWEST:
        return f"{len(kept)} different rows are too few to hold some out"
    return Rows(
        inputs={path: np.stack([batches[which][0][path][row] for which, row in kept]) for path in paths},
        target=np.stack([batches[which][1][row] for which, row in kept]),
        batches=tuple(rest for rows in of_batches if len(rest := rows[~np.isin(rows, held_out)])),
        held_out=np.sort(held_out),
        first=of_batches[0],
    )


def _first(batches: Sequence[tuple[Mapping[str, Array], Array]], paths: list[str]) -> list[Array]:
    inputs, target = batches[0]
    return [*(inputs[path] for path in paths), target]
