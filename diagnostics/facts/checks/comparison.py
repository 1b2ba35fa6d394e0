"""Facts about two functions that should do the same, and about values that should be equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from diagnostics.facts.frozen import frozen

PatternKind = Literal[
    "scaled", "swapped axes", "flipped", "shifted", "refilled", "broadcast", "constant", "other normalised axis"
]
DifferenceKind = Literal[
    "values", "dtype", "shape", "structure", "no gradient", "raised", "changed input", "precision"
]


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
