"""Locates the origin of a non-finite loss of a Keras model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import named, unpack
from diagnostics.collectors.keras.harmless import NOTICED, of_call, of_loss
from diagnostics.collectors.keras.weights import Weights, not_finite
from diagnostics.errors import InvalidInput
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.failed_batch import FailedBatch

from .replay import Replayed, replay


@dataclass
class StepSnapshot:
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
    last: StepSnapshot,
    earlier: list[StepSnapshot],
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

    def facts(kept: StepSnapshot, kind: Any, replayed: bool, **more: Any) -> OriginFacts:
        known = {
            "step": kept.step,
            "num_parameters": weights.trainable,
            "loss": kept.loss,
            "batch_size": kept.size or None,
            "batch_fingerprint": kept.fingerprint or None,
            "learning_rate": kept.rate,
        }
        return OriginFacts(kind=kind, replayed=replayed, noticed=noticed, **(known | more))

    def told(kept: StepSnapshot, found: Replayed) -> OriginFacts:
        return facts(
            kept, found.kind, True, module=found.module, module_kind=found.module_kind, frames=found.frames,
            inputs=found.inputs, rows=found.rows, parameters=found.gradients,
            reason=found.reason,
        )  # fmt: skip

    if last.values is None:
        return facts(last, None, False, reason=no_values)
    if (why := of_call(model).objection or of_loss(model).objection) is not None:
        no_batch = f"the step was not replayed, because {NOTICED.format(why)}"
    broken = not_finite(weights.names, last.values)
    if not broken:
        if last.batch is None or why:
            return facts(last, None, False, reason=no_batch)
        return told(last, replay(model, weights, last.values, last.batch, gradient=False))
    if not earlier:
        why = "this happened before the first watched step"
        return facts(last, "weights", False, parameters=broken, reason=why)
    sound = [kept for kept in earlier if kept.values and not not_finite(weights.names, kept.values)]
    for kept in sound:
        if kept.batch is None or why:
            continue
        assert kept.values is not None
        found = replay(model, weights, kept.values, kept.batch, gradient=True)
        if found.kind is not None:
            return told(kept, found)
        if kept is earlier[-1] and found.loss is not None:
            return facts(kept, "optimizer step", True, parameters=broken)
    before = earlier[-1]
    reason = "the weights were not checked after each step"
    if before.values is None or before.batch is None or why:
        reason = no_values if before.values is None else no_batch
    return facts(before, "weights", False, step=last.step - 1, parameters=broken, reason=reason)


class KerasBatch(FailedBatch):
    """A batch as `train_step` gets it: `args` are inputs, target and sample weights, or None."""

    ending = ".npz"

    def save(self, path: str | Path) -> Path:
        """Write the batch with `numpy.savez`: ``x.NAME``, ``y.NAME`` and ``sample_weight.NAME``, and ``rows``.

        Raises:
            InvalidInput: the batch was not kept.
        """
        if self.why_not:
            raise InvalidInput(f"The batch of step {self.step} cannot be saved: {self.why_not}.")
        parts = zip(("x", "y", "sample_weight"), self.args, strict=True)
        arrays: dict[str, Any] = {"step": self.step, "rows": np.array(self.rows, dtype=np.int64)}
        arrays |= {
            f"{part}.{name}": np.asarray(value)
            for part, values in parts
            if values is not None
            for name, value in named(values).items()
        }
        with open(path, "wb") as file:  # given a path, NumPy would add an ending to it
            np.savez(file, **arrays)
        return Path(path)


def failed_batch(origin: OriginFacts, steps: list[StepSnapshot]) -> KerasBatch | None:
    """Return the batch of the step that an origin names, from among these; None where no batch is to blame."""
    kept = next((kept for kept in steps if kept.step == origin.step), None)
    if kept is None or origin.kind == "weights":
        return None
    there = kept.batch is not None
    return KerasBatch(
        kept.step, kept.fingerprint or None, kept.size, origin.rows, unpack(kept.batch) if there else (),
        why_not="" if there else "Keras did not show it",
    )  # fmt: skip
