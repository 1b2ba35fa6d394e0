"""Copies the weights that a model starts with, and puts them into a copy of it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.dependence.kept_pass import on_host


def num_bytes(model: nn.Module) -> int:
    """Return the size of all parameters and buffers."""
    return sum(tensor.nbytes for tensor in _state(model).values())


def starting_weights(model: nn.Module) -> Mapping[str, Tensor]:
    """Copy parameters and buffers to the host, by name."""
    return {name: on_host(tensor) for name, tensor in _state(model).items()}


def restore(model: nn.Module, values: Mapping[str, Tensor]) -> bool:
    """Put values of `starting_weights` into a copy of the model; do nothing and return False if it has others."""
    state = _state(model)
    if {name: t.shape for name, t in state.items()} != {name: t.shape for name, t in values.items()}:
        return False
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(values[name])
    model.zero_grad(set_to_none=True)
    return True


def _state(model: nn.Module) -> dict[str, Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
