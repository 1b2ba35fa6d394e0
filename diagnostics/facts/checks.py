"""Facts about two functions that should do the same, about values that should be equal, and about gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.frozen import frozen

PatternKind = Literal[
    "scaled", "swapped axes", "flipped", "shifted", "refilled", "broadcast", "constant", "other normalised axis"
]
DifferenceKind = Literal[
    "values", "dtype", "shape", "structure", "no gradient", "raised", "changed input", "precision"
]
FADED = 2.0**-23
"""Of the largest gradient: what is smaller is lost where float32 adds up the parts of all positions."""


@frozen
class Pattern:
    """How one array follows from the other.

    Attributes:
        kind: what relates them.
        axes: the axes concerned, of the expected array; of `swapped axes` the whole permutation.
        number: the factor of `scaled`, the positions of `shifted`.
    """

    kind: PatternKind
    axes: tuple[int, ...] = ()
    number: float | None = None


@frozen
class Difference:
    """Where two results first differ.

    Attributes:
        part: of the result: ``the result``, ``result['loss']``, ``the gradient of x``.
        kind: what differs.
        got: of the function that is checked: the value at `index`; a shape, a dtype, or a message.
        expected: the same of the function that is trusted.
        index: of the first value that differs.
        largest: the largest difference among all values; None if one of them is not finite.
        tolerance: at `index`.
        roundings: in which the tolerance is counted, of `dtype`.
        count: values that differ.
        total: values compared.
        dtype: the coarser of the two.
        shape: of the expected array.
        pattern: how one follows from the other, if it does.
        operation: an operation inside that expanded both of its operands, as a sentence; empty if none did.
    """

    part: str
    kind: DifferenceKind
    got: object
    expected: object
    index: tuple[int, ...] | None = None
    largest: float | None = None
    tolerance: float | None = None
    roundings: float | None = None
    count: int = 0
    total: int = 0
    dtype: str = ""
    shape: tuple[int, ...] = ()
    pattern: Pattern | None = None
    operation: str = ""


@frozen
class ComparedCase:
    """One call of both functions.

    Attributes:
        name: ``the inputs given``, ``one row``, ``batch=4 time=5``.
        sizes: of named axes.
        difference: the first; None if there is none.
        skipped: why the case says nothing; empty if it was compared.
        notes: what was not compared, or only nearly equal.
    """

    name: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    difference: Difference | None = None
    skipped: str = ""
    notes: tuple[str, ...] = ()


@frozen
class Mismatch:
    """Where two items, or an item and its row of a batch, first differ.

    Attributes:
        path: of the part: ``['image']``; empty for the item itself.
        first: the value, or what it is, as a message shows it.
        second: the same of the other.
        index: of the first number that differs; None where the parts cannot be compared number by number.
        count: numbers that differ.
        total: numbers compared.
        largest: the largest difference; None if it is not finite or there is none.
    """

    path: str
    first: str
    second: str
    index: tuple[int, ...] | None = None
    count: int = 0
    total: int = 0
    largest: float | None = None


@frozen
class WorkerGenerator:
    """A random generator as one worker of a loader has it.

    Attributes:
        worker: its number.
        name: ``numpy.random``, ``Photos.rng``.
        start: a digest of its state when the worker began.
        end: the same after it has read the first item.
        drawn: whether reading an item drew from it.
        seeded_by_item: whether reading an item seeds it, whatever its state was.
        seeded_alike: whether reading another item seeds it the same.
        first: the number that it would draw first.
    """

    worker: int
    name: str
    start: str
    end: str
    drawn: bool
    seeded_by_item: bool
    seeded_alike: bool
    first: float


@frozen
class ParameterGradient:
    """The gradient of one trainable parameter.

    Attributes:
        name: as the model names it.
        size: scalars.
        norm: of the gradient in the first step; None if it has none, NaN or inf if it is not finite.
        nonfinite: scalars of it that are NaN or infinite.
        later: the largest norm in steps after the first, where it was 0 or None before.
    """

    name: str
    size: int
    norm: float | None
    nonfinite: int = 0
    later: float = 0.0

    @property
    def reached(self) -> bool:
        """Whether some step would change it."""
        return bool(self.norm) or self.later > 0


@frozen
class AccumulationFacts:
    """The gradient of a batch, and that of its micro-batches added up.

    Attributes:
        sizes: rows of each micro-batch.
        labels: labels of each that count; None if they all do.
        ratio: of the accumulated gradient to that of the whole batch, along the latter.
        cosine: of the angle between them.
        difference: the norm of their difference, as a share of that of the whole batch's gradient.
        norm: of the whole batch's gradient.
        worst: the parameter that differs most.
        last_alone: the difference from the gradient of the last micro-batch, as a share; None if it has none.
        by_labels: the difference where each micro-batch counts by its labels; None if they all count.
        still: the difference with batch norm on its running statistics; None without batch norm.
        rounding: the relative rounding error of the weights' dtype.
    """

    sizes: tuple[int, ...]
    labels: tuple[int, ...] | None
    ratio: float
    cosine: float
    difference: float
    norm: float
    worst: str
    last_alone: float | None = None
    by_labels: float | None = None
    still: float | None = None
    rounding: float = FADED


@frozen
class PositionGradients:
    """The gradient by the input at each position of sequences of growing length.

    Attributes:
        profiles: by length: float64 (length,), the norm over rows and features.
    """

    profiles: Mapping[int, Array] = field(default_factory=dict)

    def share(self, length: int) -> float:
        """Return the gradient at the first position, as a share of the largest; NaN if one is not finite."""
        profile = self.profiles[length]
        largest = float(profile.max())
        if not math.isfinite(largest):
            return math.nan
        return float(profile[0] / largest) if largest > 0 else 0.0

    def growth(self, length: int) -> float:
        """Return the gradient at the first position, as a multiple of that at the last; NaN if that is 0."""
        profile = self.profiles[length]
        return float(profile[0] / profile[-1]) if profile[-1] > 0 else math.nan

    def positions_a_decade(self, length: int) -> float | None:
        """Return over how many positions the gradient falls to a tenth, going back; None if it does not."""
        profile = self.profiles[length]
        there = np.flatnonzero(profile > 0)
        if len(there) < 2:
            return None
        decades = math.log10(profile[there[-1]] / profile[there[0]])
        return (there[-1] - there[0]) / decades if decades > 0 else None

    def reach(self, length: int, share: float = FADED) -> int:
        """Return how many positions from the end the gradient is at least this share of the largest."""
        profile = self.profiles[length]
        largest = float(profile.max())
        if not largest > 0:
            return 0
        return length - int(np.flatnonzero(profile >= share * largest)[0])
