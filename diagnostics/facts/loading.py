"""Facts about how batches are loaded.

As in `facts.pipeline`, None always means "not known".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .inputs import Array


@dataclass(frozen=True)
class HeldGenerator:
    """A generator of random numbers that the code of a dataset or collator draws from.

    Attributes:
        kind: as it is written: ``numpy.random.Generator``.
        holder: class whose attribute it is; empty for a global, or a variable of an enclosing function.
        name: of the attribute or variable.
        drawn_in: the method or function that draws from it: ``Photos.__getitem__``.
    """

    kind: str
    holder: str
    name: str
    drawn_in: str


@dataclass(frozen=True)
class WorkerFacts:
    """The worker processes of the training loader, and the generators that are copied into each of them.

    A generator counts only if nothing is seen to seed it anew in the worker.

    Attributes:
        workers: number of processes.
        persistent: whether they stay from one epoch to the next; else each epoch begins with new copies.
        generators: those of dataset and collator.
    """

    described: ClassVar[str] = "a loader with worker processes"

    workers: int
    persistent: bool
    generators: tuple[HeldGenerator, ...] = ()


@dataclass(frozen=True)
class RowOrder:
    """The labels of all rows given to a training, in their order.

    Attributes:
        labels: integers (rows,).
        held_out: rows at the end that are kept for validation before any shuffling; 0 if none are.
        shuffled: whether training draws the others in random order.
        batch_size: rows in a batch.
    """

    described: ClassVar[str] = "the labels in the order of their rows"

    labels: Array
    held_out: int
    shuffled: bool
    batch_size: int
