"""Keeps some weights of a model whose gradients a script averages by `all_reduce`, to compare the ranks."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.facts.ranks.replicas import Sample
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import Unsubscribe

from .replicas import PARAMETERS, is_plain, is_sampled, values_of

MAX_ALL_REDUCES = 4_096  # all-reduces of one step that are looked at
TRIES = 8  # all-reduces of one tensor for the whole model whose values are compared with the gradients
COMPARED = 64  # values of the first gradient
ALIKE = 0.999  # cosine between gradients and their copy, which may be scaled; weights are not that near by chance
SHARE = 0.5  # of the parameters with a gradient: fewer may be parts that ranks share, and others not


class HandAveraged:
    """The parameters of the first optimizer that steps.

    Attributes:
        fault: of this library, after which nothing more is kept; None without any.
        averaged: whether the script made an all-reduce, over all ranks, of most of their gradients.
        samples: by optimizer steps, some weights after them.
    """

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.averaged = False
        self.samples: dict[int, Sample] = {}
        self._guard = FaultGuard(on_fault=self._failed)
        self._optimizer: weakref.ref[Optimizer] | None = None
        self._module: weakref.ref[nn.Module] | None = None
        self._steps = 0
        self._reduced: set[tuple[int, int]] = set()  # places and sizes of tensors, since the last step
        self._gradients: set[tuple[int, int]] = set()  # after a sampled step, until the next
        self._in_group = self._has_whole_model = False
        self._largest_sent = self._largest_held = 0.0  # elements of a tensor
        self._tries = 0
        self._stepped_on: tuple[weakref.ref[Tensor], int] | None = None  # a gradient at the last step, its version

    def attach(self) -> Unsubscribe:
        """Keep from now on; return what ends it."""
        return taps.optimizer_step.after.subscribe(self._stepped)

    @property
    def model(self) -> str:
        """Class of the module that the script called last."""
        module = None if self._module is None else self._module()
        return "the model" if module is None else type(module).__name__

    def called(self, module: nn.Module) -> None:
        """Take note of the module that the script calls."""
        if self._module is None or self._module() is not module:
            self._module = weakref.ref(module)

    @property
    def may_be_averaged(self) -> bool:
        """Whether something might keep the weights alike: not if all collectives since step 1 are small."""
        known = self._in_group and self._has_whole_model and self.fault is None
        return not known or self._largest_sent >= self._largest_held

    def collective(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Take note of a collective before it is made."""
        if self.fault is None and not self.averaged and not is_own_run():
            if self._steps and name != "barrier":
                self._largest_sent = max(self._largest_sent, _size(name, arguments, options))
            if name == "all_reduce":
                self._guard.attempt(self._reduce, arguments, options)

    def _failed(self, fault: Exception) -> None:
        self.fault = fault

    def _reduce(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        tensor = arguments[0] if arguments else options.get("tensor")
        group = arguments[2] if len(arguments) > 2 else options.get("group")
        of_all = group is None or group is torch.distributed.group.WORLD
        if of_all and is_plain(tensor) and len(self._reduced) < MAX_ALL_REDUCES:
            self._reduced.add(_place(tensor))
            self._reduce_whole(tensor)

    def _reduce_whole(self, tensor: Tensor) -> None:
        """Take note of one tensor that holds the gradients of all parameters: in place, as a copy, or no more.

        Local SGD averages the weights in the same way, and ranks that train apart what they have moved; neither
        looks like the gradients of a backward pass after the last step.
        """
        optimizer = None if self._optimizer is None else self._optimizer()
        if optimizer is None or self._tries >= TRIES or tensor.numel() < COMPARED or _is_capturing():
            return
        gradients = list(_gradients(optimizer))
        if tensor.numel() != sum(one.numel() for one in gradients) or self._has_stepped_on(gradients[0]):
            return
        self._tries += 1
        with torch.no_grad():
            gradient = gradients[0].detach().flatten()[:COMPARED].double()
            copy = tensor.detach().flatten()[: len(gradient)].double()
            norms = float(copy.norm() * gradient.norm())
            if norms > 0:
                self.averaged = float(copy @ gradient) > ALIKE * norms
            elif gradient.any():  # a buffer of which the gradients were views, and are no more, stays at zero
                self.averaged = not tensor.any()

    def _has_stepped_on(self, gradient: Tensor) -> bool:
        if self._stepped_on is None:
            return False
        known, version = self._stepped_on
        return int(gradient._version) == version and known() is gradient

    def _stepped(self, optimizer: Optimizer, *_: Any) -> None:
        if self.fault is not None:
            return
        if self._optimizer is None:
            self._optimizer = weakref.ref(optimizer)
        if self._optimizer() is optimizer:
            self._steps += 1
            self._guard.attempt(self._look, optimizer)

    def _look(self, optimizer: Optimizer) -> None:
        # The gradients of the last step, if they were averaged too late, and those of this one.
        self.averaged |= _is_most(self._gradients, self._reduced)
        self._gradients = set()
        if is_sampled(self._steps):
            held = [one for group in optimizer.param_groups for one in group["params"] if is_plain(one)]
            self._gradients = {_place(one.grad) for one in held if is_plain(one.grad)}
            self.averaged |= _is_most(self._gradients, self._reduced)
            self._keep(held)
        self._reduced.clear()
        if not self.averaged and self._tries < TRIES:
            first: Tensor | None = next(_gradients(optimizer), None)
            self._stepped_on = None if first is None else (weakref.ref(first), int(first._version))

    def _keep(self, held: list[Tensor]) -> None:
        if _is_capturing():
            return
        module = None if self._module is None else self._module()
        names = {} if module is None else {id(one): name for name, one in module.named_parameters()}
        self._in_group |= torch.distributed.is_available() and torch.distributed.is_initialized()
        self._has_whole_model = bool(held) and all(id(one) in names for one in held)
        self._largest_held = max((float(one.numel()) for one in held), default=0.0)
        floating = [
            (names.get(id(one), f"parameter {n}"), one) for n, one in enumerate(held) if one.is_floating_point()
        ]
        kept = floating[:: max(1, len(floating) // PARAMETERS)][:PARAMETERS]
        with torch.no_grad():
            self.samples[self._steps] = Sample(None, {name: values_of(one) for name, one in kept})


def _size(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> float:
    """Return the elements of the largest tensor in a collective; infinity if it is not known."""
    if "object" in name or name == "batch_isend_irecv":
        return math.inf
    given = [value if isinstance(value, list | tuple) else [value] for value in (*arguments, *options.values())]
    tensors = [one for part in given for one in part if is_plain(one)]
    # States of random generators, which Accelerate hands out, are no weights.
    return max((float(one.numel()) for one in tensors if one.is_floating_point()), default=0.0)


def _gradients(optimizer: Optimizer) -> Iterator[Tensor]:
    grads = (one.grad for group in optimizer.param_groups for one in group["params"])
    return (one for one in grads if is_plain(one))


def _is_capturing() -> bool:
    """Whether a CUDA graph is captured: to read a value would end that."""
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def _place(tensor: Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.numel()


def _is_most(gradients: set[tuple[int, int]], reduced: set[tuple[int, int]]) -> bool:
    return bool(gradients) and len(gradients & reduced) > SHARE * len(gradients)
