"""Stores a run of any length in bounded memory, which steps are sampled, and sorts it into a `TrainingHistory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.training import (
    EvaluationHistory,
    GradientHistory,
    LossHistory,
    MemoryHistory,
    NoGradHistory,
    StepHistory,
    TrainingHistory,
    UpdateHistory,
)

RECENT = 1024  # rows kept in full, the latest ones
OLDER = 1024  # rows kept of everything before them
OFTEN = 32  # looks, after which only every eighth is taken: of a long run that is plenty, and costs less
SELDOM = 8


class History:
    """Rows of fixed fields, in the order in which they came.

    The latest `recent` rows stand in a ring. A row that leaves the ring is kept if its number is a multiple of
    `stride`; once `older` rows are full, every second of them is dropped and the stride doubles. So the memory is
    constant, and what is old is spaced evenly.

        history = History([("steps", np.int64), ("losses", np.float64)])
        history.append((0, 2.31))
        history.arrays()["losses"]        # float64 (1,)

    Args:
        fields: name and dtype of each field, or name, dtype and shape, as NumPy's structured arrays take them.
        recent: rows kept in full; at least 1.
        older: rows kept of what came before; at least 2.
    """

    def __init__(self, fields: list[Any], recent: int = RECENT, older: int = OLDER) -> None:
        self._ring = np.zeros(recent, dtype=fields)
        self._older = np.zeros(older, dtype=fields)
        self._kept = 0  # rows in use of `_older`
        self.stride = 1
        self.total = 0

    def __len__(self) -> int:
        return self._kept + min(self.total, len(self._ring))

    @property
    def nbytes(self) -> int:
        """Bytes held, the same from the first row to the last."""
        return self._ring.nbytes + self._older.nbytes

    def append(self, row: tuple[Any, ...]) -> None:
        """Add a row, its values in the order of the fields."""
        place = self.total % len(self._ring)
        if self.total >= len(self._ring):
            self._keep(place, self.total - len(self._ring))
        self._ring[place] = row
        self.total += 1

    def extend(self, count: int, **fields: Any) -> None:
        """Add many rows at once, which costs less than one by one: for each field its values (count, ...)."""
        rows = np.empty(count, self._ring.dtype)
        for name in rows.dtype.names or ():
            rows[name] = fields[name]
        while len(rows):
            place = self.total % len(self._ring)
            fitting = rows[: len(self._ring) - place]
            for leaving in range(max(self.total, len(self._ring)), self.total + len(fitting)):
                self._keep(leaving % len(self._ring), leaving - len(self._ring))
            self._ring[place : place + len(fitting)] = fitting
            self.total += len(fitting)
            rows = rows[len(fitting) :]

    def last(self) -> Any:
        """Return the latest row, by reference: what is written to its fields is kept.

        Raises:
            IndexError: there is none.
        """
        if not self.total:
            raise IndexError("the history has no rows yet")
        place = (self.total - 1) % len(self._ring)
        return self._ring[place : place + 1]

    def arrays(self) -> dict[str, Array]:
        """Return the kept rows by field, (n, ...), oldest first; copies."""
        total = self.total  # another thread may append meanwhile
        if total <= len(self._ring):
            ring = self._ring[:total]
        else:
            ring = np.roll(self._ring, -(total % len(self._ring)), axis=0)
        rows = np.concatenate([self._older[: self._kept], ring])
        return {name: rows[name].copy() for name in rows.dtype.names or ()}

    def _keep(self, place: int, number: int) -> None:
        """Move a row that leaves the ring to the older ones, if it is one of those to be kept."""
        if number % self.stride:
            return
        if self._kept == len(self._older):
            half = self._older[::2].copy()
            self._older[: len(half)] = half
            self._kept = len(half)
            self.stride *= 2
            if number % self.stride:
                return
        self._older[self._kept] = self._ring[place]
        self._kept += 1


def is_sampled_step(step: int, every: int) -> bool:
    """Whether weights, updates and activations are measured in a step.

    Steps 0, 1, 2, 4, 8, … up to the first multiple of `every`, each multiple of it, and after `OFTEN` of those
    only each `SELDOM`th. With ``every=1`` all steps.

    Args:
        step: counted from 0.
        every: steps between two samples, at least 1.
    """
    look, between = divmod(step, every)
    if between:
        return not look and step & (step - 1) == 0
    return every == 1 or look < OFTEN or not look % SELDOM


def training_history(
    rows: Mapping[str, Array],
    samples: Mapping[str, Array],
    *,
    total_steps: int,
    layers: tuple[str, ...],
    memory_holder: Literal["accelerator", "process"],
    evaluations: Sequence[tuple[int, float]] = (),
    saved_after: frozenset[int] = frozenset(),
    no_grad: NoGradHistory | None = None,
    scaled: bool = False,
    reached: Array | None = None,
    steps_without_optimizer: int = 0,
    skipped_steps: int = 0,
) -> TrainingHistory:
    """Leave out the parts of which nothing is known.

    Args:
        rows: by field, (n, ...): ``steps``, ``learning_rates``, ``losses`` with ``loss_known``. If the watcher
            sees them, also ``gradient_norms`` and ``layer_gradient_norms`` with ``gradient_known``, and the other
            fields of `StepHistory`.
        samples: by field, (m, ...): ``sampled_steps``, ``update_ratios``, ``weight_norms``, ``memory_bytes``.
        total_steps: see `StepHistory`, as for the other counts.
        layers: names.
        memory_holder: of ``memory_bytes``.
        evaluations: each with the step after which it was, and its loss.
        saved_after: see `EvaluationHistory`.
        no_grad: the passes without gradients, if the watcher sees them.
        scaled: see `GradientHistory`.
        reached: see `GradientHistory`.
        steps_without_optimizer: see `StepHistory`.
        skipped_steps: see `StepHistory`.
    """
    steps, sampled, memory = rows["steps"], samples["sampled_steps"], samples["memory_bytes"]
    unknown: dict[str, Array] = {
        "training_mode": np.full(len(steps), -1, np.int8),
        "passes": np.ones(len(steps), np.int64),
        "gradients_zeroed": np.full(len(steps), -1, np.int8),
        "batch_fingerprints": np.zeros(len(steps), np.uint64),
        "batch_sizes": np.zeros(len(steps), np.int64),
    }
    with_loss = rows["loss_known"]
    with_gradient = rows.get("gradient_known", np.zeros(len(steps), np.bool_))
    losses = gradients = updates = readings = at_evaluations = None
    if with_loss.any():
        losses = LossHistory(steps[with_loss], rows["losses"][with_loss])
    if with_gradient.any():
        norms, by_layer = rows["gradient_norms"][with_gradient], rows["layer_gradient_norms"][with_gradient]
        gradients = GradientHistory(layers, steps[with_gradient], norms, by_layer, scaled, reached)
    if len(sampled):
        updates = UpdateHistory(layers, sampled, samples["update_ratios"], samples["weight_norms"])
    if not np.isnan(memory).all():
        readings = MemoryHistory(sampled, memory, memory_holder)
    if evaluations:
        at, of_evaluations = zip(*evaluations, strict=True)
        at_evaluations = EvaluationHistory(np.array(at), np.array(of_evaluations), saved_after)
    return TrainingHistory(
        StepHistory(
            total_steps,
            steps,
            steps_without_optimizer=steps_without_optimizer,
            skipped_steps=skipped_steps,
            learning_rates=rows["learning_rates"],
            **{field: rows.get(field, default) for field, default in unknown.items()},
        ),
        losses,
        gradients,
        updates,
        readings,
        at_evaluations,
        no_grad,
    )
