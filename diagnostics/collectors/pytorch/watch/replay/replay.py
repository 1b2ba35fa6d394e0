"""Replays a captured pass on a copy: finds the first module that makes NaN or inf, and what led there."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.isolation.whole_copy import whole_copy
from diagnostics.collectors.pytorch.local_tensors import all_finite, local
from diagnostics.collectors.pytorch.model import uncompiled
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import (
    CapturedPass,
    named_tensors,
    settings_of,
    tensors,
)
from diagnostics.collectors.pytorch.watch.record.step_log import NonFiniteStep
from diagnostics.collectors.shared.arrays import with_parts
from diagnostics.facts.nonfinite import FrameFacts, OriginFacts, OriginKind, OverflowFacts

from .module_calls import Call, Point, broken_rows, calls_seen, value_range

FRAMES = 12  # module calls kept up to the origin; enough to see a number grow through two transformer blocks
HALF = ("float16", "bfloat16")
FirstInf = tuple[int, Literal["input", "output"], str]
PREFERRED = "torch."  # hooks of PyTorch's own, such as those of weight_norm, belong to the model


@dataclass(frozen=True)
class Found:
    """Where the NaN or inf of a replayed pass came from; see `OriginFacts` for the fields.

    Attributes:
        first_inf: the first infinity in half precision up to that place, which a product between two modules shows
            only at the next: the number of the module's call, its ``input`` or ``output``, and the dtype.
    """

    kind: OriginKind
    module: str | None = None
    module_kind: str | None = None
    frames: tuple[FrameFacts, ...] = ()
    inputs: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    first_inf: FirstInf | None = None


def twin(model: nn.Module, weights: Mapping[str, Tensor] | None) -> nn.Module:
    """Copy a model, with other weights if some are given, without gradients and without hooks of the user's."""
    inner = uncompiled(model)
    if isinstance(inner, nn.parallel.DistributedDataParallel | nn.DataParallel):
        inner = inner.module
    copied: nn.Module = whole_copy(inner)
    for module in copied.modules():
        for hooks in _hooks_of(module):
            for key, hook in list(hooks.items()):
                if not _home(hook).startswith(PREFERRED):
                    del hooks[key]
    with torch.no_grad():
        for name, parameter in copied.named_parameters():
            parameter.grad = None
            if weights is not None and name in weights:
                local(parameter).copy_(weights[name])
    return copied


def _hooks_of(module: nn.Module) -> tuple[dict[int, Any], ...]:
    return (
        module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks
    )  # fmt: skip


def _home(hook: Any) -> str:
    return str(getattr(hook, "__module__", None) or type(hook).__module__) + "."


def search(model: nn.Module, kept: CapturedPass, device: torch.device, gradient: bool) -> Found | None:
    """Run one pass on a copy made by `twin`, and find where NaN or inf begins.

    Args:
        model: the copy. It is used up: its buffers and gradients change.
        kept: the pass, with its inputs.
        device: the model's.
        gradient: whether to run backward as well, if the forward pass is finite.

    Returns:
        What was found; None if all is finite.
    """
    assert kept.inputs is not None
    args, kwargs = _fresh(kept.inputs, gradient)
    if model.training != kept.training:
        model.train(kept.training)
    with random_states_kept(), torch.set_grad_enabled(gradient), calls_seen(model, kept.size, gradient) as calls:
        with settings_of(kept, device):
            output = model(*args, **kwargs)
        whole = value_range(tensors(output))
        if whole is not None and whole.broken:
            return _in_forward(calls, kept.inputs)
        if not gradient:
            return None
        return _in_backward(model, calls, output)


def largest_output(model: nn.Module, kept: CapturedPass, device: torch.device) -> float | None:
    """Run one pass on a copy made by `twin`; return the largest absolute value among its modules' outputs."""
    assert kept.inputs is not None
    args, kwargs = _fresh(kept.inputs, False)
    model.train(kept.training)
    with (
        random_states_kept(),
        torch.no_grad(),
        calls_seen(model, kept.size, False) as calls,
        settings_of(kept, device),
    ):
        model(*args, **kwargs)
    known = [call.outputs.highest for call in calls if call.outputs is not None]
    return max((value for value in known if value is not None and math.isfinite(value)), default=None)


def _fresh(inputs: Any, gradient: bool) -> Any:
    """Copy the inputs, which in-place operations could change; floats get gradients of their own."""
    if isinstance(inputs, Tensor):
        wanted = gradient and inputs.is_floating_point()
        return inputs.detach().requires_grad_(wanted).clone() if wanted else inputs.clone()
    return with_parts(inputs, lambda part: _fresh(part, gradient))


def _in_forward(calls: list[Call], inputs: Any) -> Found:
    for place, call in enumerate(calls):
        if call.makes_it:
            if call.makes_loss:
                return Found("loss")
            frames = tuple(c.frame() for c in calls[max(0, place + 1 - FRAMES) : place + 1])
            first_inf = _first_inf(calls[: place + 1])
            return Found("forward", call.path, call.kind, frames, (), call.rows, first_inf)
    args, kwargs = inputs
    names: list[str] = []
    rows: set[int] = set()
    for name, tensor in (*named_tensors(args), *named_tensors(kwargs)):
        values = value_range([tensor])
        if values is not None and values.broken:
            names.append(name)
            rows.update(broken_rows([tensor], tensor.shape[0] if tensor.ndim else 0))
    frames = tuple(call.frame() for call in calls[:1])
    return Found("input", frames=frames, inputs=tuple(names), rows=tuple(sorted(rows)))


def _first_inf(calls: list[Call]) -> FirstInf | None:
    for place, call in enumerate(calls):
        if call.dtype in HALF:
            if call.got_it and call.inputs is not None and not call.inputs.nan:
                return place, "input", call.dtype
            if call.outputs is not None and (call.outputs.inf or (call.outputs.minus_inf and call.makes_it)):
                return place, "output", call.dtype
    return None


def _in_backward(model: nn.Module, calls: list[Call], output: Any) -> Found | None:
    """Run backward from a gradient of ones, and find the module that makes it non-finite."""
    ends = [t for t in tensors(output) if t.is_floating_point() and t.requires_grad]
    if not ends:
        return None
    torch.autograd.backward(ends, [torch.ones_like(end) for end in ends])
    made_it = []
    for place, call in enumerate(calls):
        if isinstance(call, Point):  # it has a place in the forward pass only
            continue
        own = [p.grad for p in call.module.parameters(recurse=False) if p.grad is not None]
        good = all(call.output_gradients)
        bad = not all(call.input_gradients) or not all(bool(g.isfinite().all()) for g in own)
        if good and bad:
            made_it.append((call.depth, place))
    if not made_it:
        return None
    _, place = max(made_it)  # the innermost; a parent sees the same from outside
    call = calls[place]
    frames = tuple(c.frame() for c in calls[max(0, place + 1 - FRAMES) : place + 1])
    return Found("gradient", call.path, call.kind, frames)


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
