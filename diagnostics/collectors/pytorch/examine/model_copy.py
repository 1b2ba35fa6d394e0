"""Copies the user's model, one copy at a time, and the weights that it starts with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.whole_copy import whole_copy
from diagnostics.collectors.pytorch.dependence.kept_pass import on_host
from diagnostics.collectors.pytorch.model import several_ranks
from diagnostics.collectors.shared.pipeline import CannotJudge


class ModelCopy:
    """The copy on which everything runs.

    Args:
        model: the user's.
        along: returns what computes the loss, to be copied together with the model: it may hold the model itself.
        loss: what computes the loss until there is a copy.

    Attributes:
        latest: the copy; None before the first.
        loss: what was copied along with it.
        start: weights that each further copy gets; None: those of the model.
    """

    def __init__(self, model: nn.Module, along: Callable[[], Any], loss: Any) -> None:
        self._model, self._along = model, along
        self.latest: nn.Module | None = None
        self.loss = loss
        self.start: Mapping[str, Tensor] | None = None

    def fresh(self) -> nn.Module:
        """Copy the model again, and the loss with it: it may have weights, or be a method of the model.

        Raises:
            CannotJudge: it cannot be copied, or a copy must not run.
        """
        self.latest = None  # only one at a time: they may be large
        if ranks := several_ranks():
            raise CannotJudge(
                f"{ranks} processes train together, and a forward pass in one of them could wait for the others; "
                "examine it in a single process"
            )
        try:
            made, self.loss = whole_copy((self._model, self._along()))
        except Exception as error:  # whatever a module's __deepcopy__ may raise, out of memory included
            raise CannotJudge(
                f"the model cannot be copied ({type(error).__name__}: {error}), and what belongs to "
                "you is not run: forward, backward and overfit are left out"
            ) from None
        if self.start is not None and not restore(made, self.start):
            raise CannotJudge("the model's layers were replaced during the training")
        self.latest = made
        return made


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
