"""From a step of a Keras model whose loss was not finite to what made it so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from diagnostics.watch_facts import OriginFacts

from .keras_replay import Replayed, replay
from .keras_weights import Weights, not_finite


@dataclass
class Kept:
    """What a step started from.

    Attributes:
        step: of the optimizer.
        batch: as `train_step` gets it; None if it was not seen.
        values: of all variables; None if they were not kept.
        size: examples in the batch; 0 if not known.
        fingerprint: of the batch; 0 if not known.
        rate: the learning rate; a tensor () until it is read, None if not known.
        loss: what came out; None if not known.
    """

    step: int
    batch: Any
    values: list[Any] | None
    size: int = 0
    fingerprint: int = 0
    rate: Any = None
    loss: float | None = None


def locate(
    model: keras.Model,
    weights: Weights,
    last: Kept,
    earlier: list[Kept],
    *,
    noticed: int,
    no_batch: str,
    no_values: str,
) -> OriginFacts:
    """Find where the NaN or inf began: in the last step, or in the update of one before it.

    Args:
        model: only read.
        weights: its variables.
        last: the step whose loss was not finite, or that began on weights that were not.
        earlier: steps before it that may have begun it, in order; the last of them came directly before.
        noticed: the last step that had run.
        no_batch: why batches were not seen, in words; empty if they were.
        no_values: why weights were not kept, in words.
    """

    def facts(kept: Kept, kind: Any, replayed: bool, **more: Any) -> OriginFacts:
        known = {
            "step": kept.step,
            "num_parameters": weights.trainable,
            "loss": kept.loss,
            "batch_size": kept.size or None,
            "batch_fingerprint": kept.fingerprint or None,
            "learning_rate": kept.rate,
        }
        return OriginFacts(kind=kind, replayed=replayed, noticed=noticed, **(known | more))

    def told(kept: Kept, found: Replayed) -> OriginFacts:
        return facts(
            kept, found.kind, True, module=found.module, module_kind=found.module_kind, frames=found.frames,
            inputs=found.inputs, rows=found.rows, parameters=found.gradients,
            reason=found.reason,
        )  # fmt: skip

    if last.values is None:
        return facts(last, None, False, reason=no_values)
    broken = not_finite(weights.names, last.values)
    if not broken:
        if last.batch is None:
            return facts(last, None, False, reason=no_batch)
        return told(last, replay(model, weights, last.values, last.batch, gradient=False))
    if not earlier:
        why = "they did so before the first step that was watched"
        return facts(last, "weights", False, parameters=broken, reason=why)
    sound = [kept for kept in earlier if kept.values and not not_finite(weights.names, kept.values)]
    for kept in sound:
        if kept.batch is None:
            continue
        assert kept.values is not None
        found = replay(model, weights, kept.values, kept.batch, gradient=True)
        if found.kind is not None:
            return told(kept, found)
        if kept is earlier[-1] and found.loss is not None:
            return facts(kept, "optimizer step", True, parameters=broken)
    before = earlier[-1]
    reason = "they were not looked at after each step"
    if before.values is None or before.batch is None:
        reason = no_values if before.values is None else no_batch
    return facts(before, "weights", False, step=last.step - 1, parameters=broken, reason=reason)
