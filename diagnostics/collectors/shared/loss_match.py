"""Recognises a loss by computing every candidate, and says which are worth computing again at unit scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import LossKind, Reads

READINGS: tuple[Reads, ...] = ("logits", "probabilities")  # of a prediction, by a cross entropy
AGREEMENT = 1e-3  # relative; summing float32 in another order changes far less, another loss far more
FAR = 1.5  # times the chance level: no rule asks why a loss below it is high


@dataclass(frozen=True)
class Recognised:
    """The recognised loss; the fields are those of `LossFacts`.

    `num_classes` is the size of the class axis where the target holds class indices. Labels of one class only do
    not show in a mean whether classes are weighed: then `class_weights` is None.
    """

    kind: LossKind = "other"
    floor: float | None = None
    num_classes: int | None = None
    class_weights: bool | None = False
    reads: Reads | None = None
    broadcast: bool = False
    weights: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Candidate:
    """A loss that it could be.

    Attributes:
        compute: computes that loss of the batch.
        meaning: what is recognised if it gives the right number.
    """

    compute: Callable[[], float]
    meaning: Recognised


def recognise(value: float, candidates: Iterable[Candidate]) -> Recognised:
    """Return the meaning of the first candidate that gives `value`.

    If several give it, what they disagree on is not known: a loss that is the same whether the prediction is
    read as logits or as log-probabilities says nothing about which it is read as.
    """
    matching = [candidate.meaning for candidate in candidates if _agrees(value, candidate)]
    if not matching:
        return Recognised()
    first = matching[0]
    readings = {meaning.reads for meaning in matching if meaning.kind == first.kind}
    if len(readings) > 1:
        return Recognised(first.kind, first.floor, first.num_classes, first.class_weights)
    return first


def elementwise(
    compute: Callable[[LossKind, Reads | None], float],
    targets: Array,
    *,
    broadcast: bool,
    scale: int = 1,
    classes: int | None = None,
) -> Iterator[Candidate]:
    """Yield the losses that compare numbers one by one.

    Args:
        compute: computes one, by its kind and by what a cross entropy reads the prediction as.
        targets: (n, ...), of the shape of the prediction.
        broadcast: whether both were spread to that shape.
        scale: the numbers that are added up; 1 for a mean.
        classes: that a cross entropy of these targets tells apart; None if they name no classes.
    """
    for kind, floor in FLOORS.items():
        meaning = Recognised(kind, floor(targets) * scale, broadcast=broadcast)
        yield Candidate(partial(compute, kind, None), meaning)
    if targets.size and targets.min() >= 0 and targets.max() <= 1:
        floor_of_shares = binary_floor(targets) * scale
        meaning = Recognised("binary_cross_entropy", floor_of_shares, classes, broadcast=broadcast)
        for reads in READINGS:
            yield Candidate(partial(compute, meaning.kind, reads), replace(meaning, reads=reads))


def entropy_floor(labels: Array, classes: int, smoothing: float = 0.0) -> float:
    """Return the least cross entropy (nats) of a constant prediction: the entropy of the labels (n,), smoothed."""
    share = np.bincount(labels.reshape(-1), minlength=classes) / labels.size
    return _entropy((1 - smoothing) * share + smoothing / classes)


def binary_floor(targets: Array) -> float:
    """Return the least binary cross entropy (nats) of a constant prediction; targets (n, ...) lie in [0, 1]."""
    share = targets.reshape(targets.shape[0], -1).mean(0, dtype=float)
    return float(np.mean([_entropy(np.array([p, 1 - p])) for p in share]))


def squared_floor(targets: Array) -> float:
    """Return the least mean squared error of a constant prediction: the variance of targets (n, ...)."""
    return float(targets.reshape(targets.shape[0], -1).var(0, dtype=float).mean())


def absolute_floor(targets: Array) -> float:
    """Return the least mean absolute error of a constant prediction: that of the median of targets (n, ...)."""
    rows = targets.reshape(targets.shape[0], -1).astype(float)
    return float(np.abs(rows - np.median(rows, axis=0)).mean())


FLOORS: dict[LossKind, Callable[[Array], float]] = {
    "mean_squared_error": squared_floor,
    "mean_absolute_error": absolute_floor,
}


def _entropy(share: Array) -> float:
    kept = share[share > 0]
    return float(-(kept * np.log(kept)).sum())


def _agrees(value: float, candidate: Candidate) -> bool:
    try:
        again = candidate.compute()
    except Exception:  # a loss that cannot be computed on this batch is not the one that was
        return False
    return abs(value - again) <= AGREEMENT * max(abs(again), 1e-6)


def is_far_above_chance(loss: float, num_classes: int | None) -> bool:
    """Return whether a cross entropy over so many classes is far above its chance level."""
    return num_classes is not None and num_classes > 1 and FAR * math.log(num_classes) < loss < math.inf


def at_unit_scale(values: Array) -> Array:
    """Divide an input by its root mean square, a table column by column: float32, of the same shape."""
    wide = values.astype(np.float64)
    size = np.sqrt(np.square(wide).mean(axis=0 if wide.ndim == 2 else None))
    return (wide / np.where(size > 0, size, 1.0)).astype(np.float32)
