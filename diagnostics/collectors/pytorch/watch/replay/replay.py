"""Replays a captured forward pass on a copy, and finds the first module that makes NaN or inf."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.whole_copy import whole_copy
from diagnostics.collectors.pytorch.local_tensors import local
from diagnostics.collectors.pytorch.model import uncompiled
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import (
    CapturedPass,
    named_tensors,
    settings_of,
    tensors,
)
from diagnostics.collectors.shared.arrays import with_parts
from diagnostics.facts.nonfinite import FrameFacts, OriginKind

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
