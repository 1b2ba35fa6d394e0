"""Compares the first rows of several evaluations, to see whether the dataset changes them at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.pytorch.discover.batch_source import latest_batch
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import EvaluationDraws

ROUNDS = 4  # of evaluation that are kept, the first ones: 256 KiB each at most
MIN_ROWS, MAX_ROWS = 12, 128  # rows
KEPT = 0.1  # of the rows
NUMBERS = 512  # of a row, evenly spread
ORDERS = 200  # in which rows are dealt out within their class, to know how alike they are by chance


@dataclass
class _Opening:
    """A part of the first batch of an evaluation, and all of its labels."""

    source: int
    rows: Tensor
    labels: Tensor


class EvaluationOpenings(TrainingProbe):
    """Copies the inputs and labels of the first batch of some evaluations, where its rows come in their order."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._kept: list[_Opening] = []
        self._trained_on: int | None = None
        self._step = -1

    def on_pass_begin(self, step: int, args: Any, kwargs: Any) -> None:
        """Remember the dataset of a training pass."""
        self._trained_on = latest_batch.base

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Look at a pass without gradients, if it is the first after a step."""
        if step == self._step:
            return
        self._step = step
        labels = latest_batch.labels_beside((args, kwargs))
        if len(self._kept) >= ROUNDS or labels is None or not latest_batch.opens or len(labels) < MIN_ROWS:
            return
        given = [one for one in tensors((args, kwargs)) if type(one) is Tensor and one.is_floating_point()]
        if given and given[0].ndim > 1 and len(given[0]) == len(labels) and given[0].layout is torch.strided:
            rows = given[0].detach()[:MAX_ROWS].flatten(1)
            part = rows[:, :: -(-rows.shape[1] // NUMBERS)].to(torch.float32, copy=True)
            self._kept.append(_Opening(latest_batch.base, part, labels.detach().reshape(-1)[:MAX_ROWS].clone()))

    def facts(self) -> Iterator[EvaluationDraws | None]:
        """Yield what changed between three evaluations or more of the same rows."""
        kept = list(self._kept)
        if not kept:
            return
        first = kept[0]
        kept = [one for one in kept if one.source == first.source and one.rows.shape == first.rows.shape]
        parts = to_host(dict(enumerate(tensor for one in kept for tensor in (one.rows, one.labels))))
        inputs, labels = ([parts[2 * place + side] for place in range(len(kept))] for side in (0, 1))
        same = [place for place, given in enumerate(labels) if np.array_equal(given, labels[0])]
        if len(same) < 3:
            return
        rows = [inputs[place].astype(np.float64) for place in same]
        yield _compared(rows, labels[0], shared=first.source == self._trained_on)


def _compared(rounds: list[Array], labels: Array, shared: bool) -> EvaluationDraws | None:
    """Compare the same rows, given each time (rows, numbers)."""
    first, second, third = rounds[:3]
    if not all(np.isfinite(one).all() for one in rounds):
        return None
    changes = [other - first for other in rounds[1:]]
    spread = float(np.sqrt(np.square(first - first.mean(axis=0)).mean()))
    change = float(np.sqrt(np.mean([np.square(one).mean() for one in changes])))
    one, other = second - first, third - second
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return EvaluationDraws(
        rounds=len(rounds),
        rows=len(first),
        changed=float(np.mean([(one != 0).any(axis=1).mean() for one in changes])),
        change=change / spread if spread else 0.0,
        turn=float((one * other).sum()) / size if size else 0.0,
        likeness=_likeness(first, second, labels),
        nearer=_nearer(rounds, labels),
        shared=shared,
    )


def _likeness(first: Array, second: Array, labels: Array) -> float:
    """Return how far a row keeps what sets it apart in its class: the correlation of its sorted numbers.

    1 where some rows have all of their numbers still: those re-created have not.
    """
    one, other = (np.sort(rows, axis=1) for rows in (first, second))
    if ((one == other).all(axis=1) & (one[:, 0] < one[:, -1])).mean() >= KEPT:
        return 1.0
    one, other = (_within_class(rows, labels) for rows in (one, other))
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float((one * other).sum()) / size if len(one) >= MIN_ROWS and size else 0.0


def _nearer(rounds: list[Array], labels: Array) -> float:
    """Return by how many standard deviations rows are more like themselves than like others of their class."""
    parts = [_within_class(np.sort(rows, axis=1), labels) for rows in rounds]
    sizes = [int(size) for size in np.unique(labels, return_counts=True)[1] if size > 1]
    if not sizes:
        return 0.0
    alike = np.sum([one @ other.T for one, other in combinations(parts, 2)], axis=0)
    rng, own = np.random.default_rng(0), np.arange(len(alike))
    groups = np.split(own, np.cumsum(sizes)[:-1])
    orders = (np.concatenate([rng.permutation(group) for group in groups]) for _ in range(ORDERS))
    chance = np.array([alike[own, order].sum() for order in orders])
    spread = float(chance.std())
    return (float(np.trace(alike)) - float(chance.mean())) / spread if spread else 0.0


def _within_class(rows: Array, labels: Array) -> Array:
    """Return the differences of rows from the mean of their class; without those that are alone in it."""
    parts = [rows[labels == label] for label in np.unique(labels)]
    return np.concatenate([part - part.mean(axis=0) for part in parts if len(part) > 1] or [rows[:0]])
