"""Locates the origin of a non-finite step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.pytorch.local_tensors import all_finite
from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass
from diagnostics.collectors.pytorch.watch.record.step_log import NonFiniteStep
from diagnostics.facts.nonfinite import OriginFacts

from .overflow import in_float32
from .replay import search, twin


def locate(
    failure: NonFiniteStep,
    model: nn.Module,
    parameters: Mapping[str, nn.Parameter],
    weights: Mapping[str, Tensor] | None,
    passes: Sequence[CapturedPass],
    *,
    device: torch.device,
    noticed: int,
    why_no_weights: str = "",
) -> OriginFacts:
    """Find where the NaN or inf of a step began.

    With the weights from before the step and the inputs of its passes these are run again on a copy. Without
    weights the model as it is now is searched with the same inputs, if its weights are still finite. Without
    either only the step and the gradients are known.

    Args:
        failure: the step.
        model: never run itself; only copied. No hook of the watcher may be on it.
        parameters: the trainable ones, by name.
        weights: theirs, from before the step; None if they were not kept.
        passes: those that led to the step.
        device: the model's.
        noticed: the last step that had run.
        why_no_weights: in words.
    """
    names = list(parameters)
    broken_gradients = tuple(names[number] for number in failure.gradients)

    def facts(kind: str | None, replayed: bool, **more: object) -> OriginFacts:
        known: dict[str, object] = {
            "step": failure.step,
            "parameters": broken_gradients,
            "num_parameters": len(names),
            "loss": failure.loss,
            "batch_size": failure.size or None,
            "batch_fingerprint": failure.fingerprint or None,
            "learning_rate": failure.rate,
            "left_out": failure.left_out,
        }
        return OriginFacts(kind=kind, replayed=replayed, noticed=noticed, **(known | more))  # type: ignore[arg-type]

    def from_outside() -> str | None:
        if failure.loss_bad:
            return None  # the output may have been broken as well
        return "gradient" if failure.loss is not None else None

    if weights is not None and (broken := not_finite(weights)):
        if failure.step > 0:
            # Loss and batch are those of the step after, and say nothing about this one.
            return facts(
                "optimizer step", True, step=failure.step - 1, parameters=broken,
                loss=None, batch_size=None, batch_fingerprint=None,
            )  # fmt: skip
        return facts(
            "weights", True, parameters=broken, reason="they did so before the first step that was watched"
        )
    if weights is None and not_finite(parameters):
        return facts(from_outside(), False, reason=why_no_weights)
    usable = [kept for kept in passes if kept.inputs is not None and not kept.changed]
    if not usable:
        return facts(from_outside(), False, reason=_why_unusable(passes))
    replayed = weights is not None
    for kept in usable:
        with own_run():
            found = search(twin(model, weights), kept, device, gradient=not failure.loss_bad)
        if found is not None:
            kept.broke = True
            parameters_named = broken_gradients if found.kind == "gradient" else ()
            return facts(
                found.kind, replayed, parameters=parameters_named, module=found.module,
                module_kind=found.module_kind, frames=found.frames, inputs=found.inputs, rows=found.rows,
                batch_size=kept.size or None, reason="" if replayed else why_no_weights,
                overflow=in_float32(twin(model, weights), kept, device, found) if found.first_inf else None,
            )  # fmt: skip
    if not replayed:
        return facts(from_outside(), False, reason=why_no_weights)
    return facts("loss" if failure.loss_bad else "gradient", True)


def not_finite(tensors: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Name the tensors that hold NaN or inf."""
    with torch.no_grad():
        return tuple(name for name, tensor in tensors.items() if not all_finite(tensor))


def _why_unusable(passes: Sequence[CapturedPass]) -> str:
    if not passes:
        return "no forward pass of that step was seen"
    if any(kept.changed for kept in passes):
        return "the batch was modified after the model had seen it"
    return next((kept.why_not for kept in passes if kept.why_not), "")
