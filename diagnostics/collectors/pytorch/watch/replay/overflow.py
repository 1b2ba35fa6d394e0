"""Tests whether a number that became infinite in half precision fits into float32."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass, settings_of
from diagnostics.facts.nonfinite import OverflowFacts

from .module_calls import calls_seen
from .replay import Found


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
    if isinstance(inputs, list | tuple):
        return type(inputs)(_widened(part) for part in inputs)
    if isinstance(inputs, dict):
        return {key: _widened(part) for key, part in inputs.items()}
    return inputs
