"""Locates the origin of a non-finite step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.pytorch.local_tensors import all_finite
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass, settings_of
from diagnostics.collectors.pytorch.watch.record.step_log import NonFiniteStep
from diagnostics.collectors.pytorch.watch.replay.module_calls import calls_seen
from diagnostics.collectors.pytorch.watch.replay.replay import Found, largest_output, search, twin
from diagnostics.collectors.shared.arrays import with_parts
from diagnostics.facts.nonfinite import OriginFacts, OverflowFacts


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
        return facts("weights", True, parameters=broken, reason="this happened before the first watched step")
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
                largest=largest_output(twin(model, weights), kept, device) if found.kind == "loss" else None,
            )  # fmt: skip
    if not replayed:
        return facts(from_outside(), False, reason=why_no_weights)
    if not failure.loss_bad:
        return facts("gradient", True)
    with own_run():
        largest = [largest_output(twin(model, weights), kept, device) for kept in usable]
    return facts("loss", True, largest=max((one for one in largest if one is not None), default=None))


def not_finite(tensors: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Name the tensors that hold NaN or inf."""
    with torch.no_grad():
        return tuple(name for name, tensor in tensors.items() if not all_finite(tensor))


def in_float32(model: nn.Module, kept: CapturedPass, device: torch.device, found: Found) -> OverflowFacts | None:
    """Run a pass on a copy in float32, and look up what was infinite in half precision.

    Args:
        model: a copy made by `twin`. It is used up.
        kept: the pass, with its inputs.
        device: the model's.
        found: what `search` found in the same pass.

    Returns:
        How large the number is there; None if nothing was infinite in half precision, or if the model does not run
        in float32.
    """
    if found.first_inf is None or kept.inputs is None:
        return None
    place, side, dtype = found.first_inf
    try:
        args, kwargs = _widened(kept.inputs)
        model.float().train(kept.training)
        plain = dataclasses.replace(kept, autocast=())
        with (
            random_states_kept(),
            torch.no_grad(),
            calls_seen(model, kept.size, False) as calls,
            settings_of(plain, device),
            _Uncast(),
        ):
            model(*args, **kwargs)
    except Exception:  # a model that insists on its dtype: then it is not known
        return None
    if place >= len(calls):
        return None
    values = calls[place].inputs if side == "input" else calls[place].outputs
    highest = math.nan if values is None or values.highest is None else values.highest
    if values is not None and not values.broken and not math.isnan(highest):
        return OverflowFacts(calls[place].path, side, dtype, torch.finfo(getattr(torch, dtype)).max, highest)
    return None


class _Uncast(TorchFunctionMode):  # type: ignore[misc]
    """Autocast is off, also where the model's own `forward` turns it on."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C._DisableAutocast():
            return func(*args, **(kwargs or {}))


def _widened(inputs: Any) -> Any:
    """Copy the inputs, floats of half precision as float32."""
    if isinstance(inputs, Tensor):
        return inputs.float() if inputs.is_floating_point() else inputs.clone()
    return with_parts(inputs, _widened)


def _why_unusable(passes: Sequence[CapturedPass]) -> str:
    if not passes:
        return "no forward pass of that step was seen"
    if any(kept.changed for kept in passes):
        return "the batch was modified after the model had seen it"
    return next((kept.why_not for kept in passes if kept.why_not), "")
