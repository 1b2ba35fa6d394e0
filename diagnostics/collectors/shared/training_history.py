"""Sorts what a watcher has kept, step by step, into the parts of a `TrainingHistory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

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
