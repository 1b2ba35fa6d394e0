"""Finds out whether the running statistics of batch norm lag behind the weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from diagnostics.collectors.shared.dependence.subject import Unclear
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import StatisticsFacts

from .subject import Subject

CLASSES = 1024  # at most


def compare_statistics(subject: Subject) -> StatisticsFacts:
    """Classify the rows of the batch with the running statistics, and with the batch's own.

    Raises:
        Unclear: the model has no batch norm with running statistics, or classifies no rows with known labels.
        OutOfTime: the time is over.
    """
    norms = [m for m in subject.model.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
    if not norms:
        raise Unclear("the model has no batch norm with running statistics")
    labels = subject.target
    if labels is None or labels.dtype.kind == "f" or labels.ndim != 1 or len(labels) < 2:
        raise Unclear("the labels of the batch are not known")
    running = subject.ask(subject.inputs).main
    with _own_statistics(norms):
        own = subject.ask(subject.inputs).main
    if running.shape != own.shape or running.shape[:1] != labels.shape or running.ndim != 2:
        raise Unclear("the model gives no scores of classes for each row")
    known = (labels >= 0) & (labels < running.shape[1])
    if not 1 < running.shape[1] <= CLASSES or not known.any():
        raise Unclear("the model gives no scores of classes for each row")
    counts = np.bincount(labels[known].astype(np.int64))
    return StatisticsFacts(
        rows=int(known.sum()),
        right_with_running=_right(running, labels, known),
        right_with_own=_right(own, labels, known),
        most_frequent=int(counts.max()),
    )


def _right(scores: Array, labels: Array, known: Array) -> int:
    return int((scores.argmax(axis=1) == labels)[known].sum())


@contextlib.contextmanager
def _own_statistics(norms: list[nn.Module]) -> Iterator[None]:
    """Let layers of batch norm take the statistics of their batch, in evaluation mode."""
    before = [(norm.running_mean, norm.running_var) for norm in norms]
    try:
        for norm in norms:
            norm.running_mean = norm.running_var = None
        yield
    finally:
        for norm, (mean, variance) in zip(norms, before, strict=True):
            norm.running_mean, norm.running_var = mean, variance
