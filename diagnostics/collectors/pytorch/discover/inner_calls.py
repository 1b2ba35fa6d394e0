"""Finds layers that a model makes within its forward pass and lets go of at its end."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

MOST_INNER = 4096  # calls of layers within one forward pass that are remembered


class InnerCalls:
    """Remembers which layers are called within the first forward pass of a model, by weak references.

    Of a layer its own matrices count: a norm that is made on the spot begins as the identity, and serves as a
    function. So does a random layer ahead of all trained ones: an augmentation.
    """

    def __init__(self) -> None:
        self._called: list[tuple[weakref.ref[nn.Module], str, list[weakref.ref[Tensor]]]] = []

    def add(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        """Remember a call that is about to run, if its input was computed from parameters."""
        if len(self._called) >= MOST_INNER or isinstance(module, torch.jit.ScriptModule):
            return
        there = [p for p in module._parameters.values() if p is not None and not is_lazy(p)]
        matrices = [p for p in there if p.requires_grad and p.ndim > 1]
        if matrices and any(isinstance(given, Tensor) and given.grad_fn is not None for given in arguments):
            own = [weakref.ref[Tensor](matrix) for matrix in matrices]
            self._called.append((weakref.ref(module), type(module).__name__, own))

    def gone(self) -> tuple[tuple[str, weakref.ref[Tensor]], ...]:
        """Return the matrices of layers that exist no more, each with its layer's class, and forget all calls."""
        called, self._called = self._called, []
        return tuple((name, matrix) for module, name, own in called if module() is None for matrix in own)
