"""Chooses the examples of a subset. No framework."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from diagnostics.collectors.shared.overfit_run import Plan, Run
from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import LossKind

from .answers import Seen

MIN_EXAMPLES = 5  # examples: a batch of fewer is joined with the next ones
MOST_BATCHES = 8  # joined, in search of every label


@dataclass(frozen=True)
class Rows:
    """The examples that subsets are made of.

    Attributes:
        inputs: a digest of the inputs of each.
        targets: a digest of the target of each.
        values: float (examples,): see `SubsetTrial.targets`; None if there is no such thing.
        classes: the classes that were seen in the data; empty if it has none.
        size: of the batch; there may be more examples than that, to have every label.
    """

    inputs: tuple[bytes, ...]
    targets: tuple[bytes, ...]
    values: Array | None
    classes: frozenset[int]
    size: int


class Subsets(Protocol):
    """What trains copies on parts of a batch.

    Attributes:
        rows: to choose from.
        kind: of the loss.
        rate: the user's learning rate; None if their optimizer is not known.
        optimizer: the class name of theirs, known after the first run with it.
        rescalable: whether a regression can be trained on targets of mean 0 and standard deviation 1.
        num_parameters: scalars of the model.
        num_trainable: those that require a gradient.
    """

    rows: Rows
    kind: LossKind
    rate: float | None
    num_parameters: int
    num_trainable: int
    optimizer: str
    rescalable: bool

    def run(self, chosen: Sequence[int], plan: Plan, seen: Seen) -> Run:
        """Train a copy on the chosen rows, seeded as every other; tell `seen` of each step."""
        ...


def ordered(rows: Rows) -> list[int]:
    """Order rows so that the first have different targets and different inputs; as many as the batch holds.

    What is equal in both is taken once: joined batches of a small dataset repeat its rows.
    """
    once = {pair: row for row, pair in reversed(list(enumerate(zip(rows.inputs, rows.targets, strict=True))))}
    order: list[int] = []
    for wants_target, wants_inputs in ((True, True), (False, True), (False, False)):
        targets, inputs = {rows.targets[row] for row in order}, {rows.inputs[row] for row in order}
        for row in sorted(once.values()):
            known = wants_target and rows.targets[row] in targets, wants_inputs and rows.inputs[row] in inputs
            if row in order or any(known):
                continue
            order.append(row)
            targets.add(rows.targets[row])
            inputs.add(rows.inputs[row])
    return order[: max(rows.size, 1)]


def digests(arrays: Sequence[Array], size: int) -> tuple[bytes, ...]:
    """Return a digest of each row of arrays (size, ...), all of them together."""
    found = []
    for row in range(size):
        digest = hashlib.blake2b(digest_size=16)
        for array in arrays:
            digest.update(np.ascontiguousarray(array[row]).tobytes())
        found.append(digest.digest())
    return tuple(found)
