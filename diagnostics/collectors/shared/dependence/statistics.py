"""Finds out whether the running statistics of batch norm lag behind the weights."""

from __future__ import annotations

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.dependence import StatisticsFacts

from .subject import Subject, Unclear

CLASSES = 1024  # at most


def compare_statistics(subject: Subject) -> StatisticsFacts:
    """Classify the rows of the batch with the running statistics, and with the batch's own.

    Raises:
        Unclear: the model has no batch norm with running statistics, or classifies no rows with known labels.
        OutOfTime: the time is over.
    """
    with subject.own_statistics() as memory:
        labels = _labels(subject.target)
        own = subject.ask(subject.inputs).main
    running = subject.ask(subject.inputs).main
    if running.shape != own.shape or running.shape[:1] != labels.shape or running.ndim != 2:
        raise Unclear("the model does not return class scores for each row")
    known = (labels >= 0) & (labels < running.shape[1])
    if not 1 < running.shape[1] <= CLASSES or not known.any():
        raise Unclear("the model does not return class scores for each row")
    counts = np.bincount(labels[known].astype(np.int64))
    return StatisticsFacts(
        rows=int(known.sum()),
        right_with_running=_right(running, labels, known),
        right_with_own=_right(own, labels, known),
        most_frequent=int(counts.max()),
        memory=memory,
    )


def _labels(target: Array | None) -> Array:
    """Return the class of each row; a row of a one-hot matrix is a class."""
    if target is not None and target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target is not None and target.ndim == 2 and len(target) > 1:
        if np.isin(target, (0, 1)).all() and (target.sum(axis=1) == 1).all():
            classes: Array = target.argmax(axis=1)
            return classes
    elif target is not None and target.ndim == 1 and target.dtype.kind != "f" and len(target) > 1:
        return target
    raise Unclear("the labels of the batch are not known")


def _right(scores: Array, labels: Array, known: Array) -> int:
    return int((scores.argmax(axis=1) == labels)[known].sum())
