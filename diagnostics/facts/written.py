"""What stands in the source of a script, and cannot be seen while it runs: names, and no framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .where import Where


@dataclass(frozen=True)
class KeptModel:
    """A loop that trains a model and keeps the best one under a second name, for use after the loop.

    Attributes:
        kept: the second name: ``best_model``.
        model: the name of the model: ``model``; of a container without copies, what it is made of.
        where: the line that keeps it.
    """

    kept: str
    model: str
    where: Where


@dataclass(frozen=True)
class UnreadSplit:
    """Two parts of a dataset, of which one is never used, and the other is both trained and evaluated on.

    Attributes:
        unread: the name of the part that is never used: ``val_set``.
        read: the name of the part that is read instead: ``train_set``.
        loader: what is made of that part under a name of evaluation: ``val_loader``.
        where: the line that makes the loader.
    """

    unread: str
    read: str
    loader: str
    where: Where


@dataclass(frozen=True)
class ConstantArgmax:
    """An argmax over the last axis of a model's answers, of which there is one for each example: always 0.

    Attributes:
        of: what it is taken of, as written: ``outputs``.
        answers: the shape of the answers to a batch: (examples, 1).
        where: the line.
    """

    of: str
    answers: tuple[int, ...]
    where: Where


@dataclass(frozen=True)
class WrittenFacts:
    """What stands in the script and the modules beside it that it has imported.

    Attributes:
        kept: models kept by reference.
        unread: splits that are never read.
        argmaxes: those that are always 0.
    """

    described: ClassVar[str] = "the source of the script"

    kept: tuple[KeptModel, ...] = ()
    unread: tuple[UnreadSplit, ...] = ()
    argmaxes: tuple[ConstantArgmax, ...] = ()
