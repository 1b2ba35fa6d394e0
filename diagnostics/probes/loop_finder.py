"""Finds the training loops of a script that nobody changed, by looking on at what PyTorch is called with.

A loop is an optimizer that steps, the modules whose parameters it holds, and the losses whose backward passes led
to the step. A Trainer's loop is no business of this: see `LoopFinder.left_alone`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from diagnostics.own_runs import is_own_run
from diagnostics.report import Report

from .frames import FROZEN

ROOTS = 64  # modules that a script calls by itself; a loop that calls more holds its layers in a list
LOSSES = 1024  # backward passes for one step


class Watching(Protocol):
    """What the finder needs of whoever watches; a `diagnostics.Watch` is one."""

    def step(self, loss: Any = None) -> None:
        """Take the loss of a pass."""

    def close(self) -> None:
        """Stop watching."""

    def report(self) -> Report:
        """Say what was seen."""


class LoopFinder:
    """Hands each model that begins to train, with its optimizers, to `watch`, and each loss to what that returned.

    A model is watched from its first forward pass on, if by then an optimizer holds parameters of it. If a loop
    calls several modules for one optimizer, they are watched together from that optimizer's first step on. An
    optimizer that holds no parameter of anything that was called, but tensors of the same shapes, is taken to be
    meant for what was called: it holds the parameters of a model that was thrown away.

    Attributes:
        watches: what `watch` returned, in the order in which training began.
    """

    def __init__(
        self, watch: Callable[[nn.Module, list[Optimizer]], Watching], fault: Callable[[Exception], None]
    ):
        """Look on from now on; end it with `close`.

        Args:
            watch: is called once a loop.
            fault: is given what goes wrong in here, which is never raised into the script.
        """
        self._watch, self._fault = watch, fault
        self.watches: list[Watching] = []
        self._optimizers: list[weakref.ref[Optimizer]] = []
        self._watch_of: weakref.WeakKeyDictionary[Optimizer, Watching] = weakref.WeakKeyDictionary()
        self._watched: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        # Modules that were called and are not watched yet; how many optimizers there were at the time.
        self._roots: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
        self._losses: deque[Tensor] = deque(maxlen=LOSSES)
        self._unscaled: tuple[weakref.ref[Tensor], Tensor] | None = None
        self._paused = 0
        self._undo: list[Callable[[], None]] = []
        self._attach()

    @contextlib.contextmanager
    def left_alone(self) -> Iterator[None]:
        """Notice nothing meanwhile: somebody else watches this training."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1
            self._roots.clear()

    def close(self) -> None:
        """Take everything off again, and end all watching."""
        while self._undo:
            self._undo.pop()()
        for watched in self.watches:
            self._safely(watched.close)

    def _attach(self) -> None:
        steps = [
            register_optimizer_step_pre_hook(lambda optimizer, *_: self._safely(self._before_step, optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, *_: self._safely(self._after_step, optimizer)),
        ]
        self._undo += [handle.remove for handle in steps]
        self._before_call(Optimizer, "__init__", self._made)
        self._before_call(torch.autograd, "backward", self._backward)
        self._after_call(torch.amp.GradScaler, "scale", self._scaled)
        self._around_modules()

    def _around_modules(self) -> None:
        """Look at each call of a module that is no part of another module's call."""
        # PyTorch's hooks for all modules come too late: what they put on a module does not see the same call.
        plain, within = nn.Module.__call__, threading.local()

        @functools.wraps(plain)
        def looked_at(module: nn.Module, *arguments: Any, **options: Any) -> Any:
            if torch.compiler.is_compiling() or getattr(within, "a_call", False):
                return plain(module, *arguments, **options)
            within.a_call = True
            try:
                if torch.is_grad_enabled() and module not in self._watched:
                    self._safely(self._called, module)
                return plain(module, *arguments, **options)
            finally:
                within.a_call = False

        self._replace(nn.Module, "__call__", plain, looked_at)

    def _before_call(self, owner: Any, name: str, look: Callable[..., None]) -> None:
        plain = getattr(owner, name)

        @functools.wraps(plain)
        def looked_at(*arguments: Any, **options: Any) -> Any:
            self._safely(look, *arguments, **options)
            return plain(*arguments, **options)

        self._replace(owner, name, plain, looked_at)

    def _after_call(self, owner: Any, name: str, look: Callable[..., None]) -> None:
        plain = getattr(owner, name)

        @functools.wraps(plain)
        def looked_at(*arguments: Any, **options: Any) -> Any:
            result = plain(*arguments, **options)
            self._safely(look, *arguments, result=result)
            return result

        self._replace(owner, name, plain, looked_at)

    def _replace(self, owner: Any, name: str, plain: Any, looked_at: Any) -> None:
        looked_at.__code__ = looked_at.__code__.replace(co_filename=FROZEN)
        setattr(owner, name, looked_at)
        self._undo.append(lambda: setattr(owner, name, plain))

    def _safely(self, work: Callable[..., None], *arguments: Any, **options: Any) -> None:
        if self._paused or is_own_run():
            return
        try:
            work(*arguments, **options)
        except Exception as fault:  # ours, and nothing the script should hear of
            self._fault(fault)

    # What the script does. Each of these is called through `_safely`.

    def _made(self, optimizer: Optimizer, *_arguments: Any, **_options: Any) -> None:
        self._optimizers.append(weakref.ref(optimizer))

    def _called(self, module: nn.Module) -> None:
        if self._roots.get(module) == len(self._optimizers):
            return
        mine = {id(parameter) for parameter in module.parameters() if parameter.requires_grad}
        of_module = [optimizer for optimizer in self._unwatched() if mine & _held(optimizer)]
        if of_module and all(_held(optimizer) <= mine for optimizer in of_module):
            self._begin(module, of_module)
        elif mine and len(self._roots) < ROOTS:
            self._roots[module] = len(self._optimizers)

    def _backward(self, tensors: Any = None, *_arguments: Any, **_options: Any) -> None:
        loss = tensors[0] if isinstance(tensors, list | tuple) and len(tensors) == 1 else tensors
        if isinstance(loss, Tensor) and loss.numel() == 1:
            if self._unscaled is not None and self._unscaled[0]() is loss:
                loss = self._unscaled[1]
            self._losses.append(loss.detach())

    def _scaled(self, _scaler: Any, outputs: Any, *, result: Any) -> None:
        if isinstance(outputs, Tensor) and isinstance(result, Tensor) and result is not outputs:
            self._unscaled = weakref.ref(result), outputs.detach()

    def _before_step(self, optimizer: Optimizer) -> None:
        if optimizer not in self._watch_of:
            self._late(optimizer)

    def _late(self, optimizer: Optimizer) -> None:
        """Begin with an optimizer whose first step comes before any one module was seen to be all of its own."""
        roots, held = list(self._roots), _held(optimizer)
        called = [root for root in roots if held.intersection(map(id, root.parameters()))]
        if not called:
            called = [root for root in roots if self._is_meant_for(optimizer, root)]
        if called:
            self._begin(called[0] if len(called) == 1 else _Together(called), [optimizer])
            self._watched.update(called)

    def _is_meant_for(self, optimizer: Optimizer, model: nn.Module) -> bool:
        """Whether an optimizer without a parameter of the model holds those of one that is built alike.

        A target network gets no gradient. An optimizer of something else, such as a temperature or an image, has
        tensors of other shapes.
        """
        trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        taken = {identity for other in self._living() for identity in _held(other)}
        shapes = {parameter.shape for parameter in trainable}
        return (
            all(id(parameter) not in taken for parameter in trainable)
            and any(parameter.grad is not None for parameter in trainable)
            and {parameter.shape for group in optimizer.param_groups for parameter in group["params"]} == shapes
        )

    def _after_step(self, optimizer: Optimizer) -> None:
        losses, watched = list(self._losses), self._watch_of.get(optimizer)
        self._losses.clear()
        if watched is not None:
            for loss in losses:
                watched.step(loss)

    def _begin(self, model: nn.Module, optimizers: list[Optimizer]) -> None:
        self._watched.add(model)
        watched = self._watch(model, optimizers)
        self.watches.append(watched)
        self._watch_of.update((optimizer, watched) for optimizer in optimizers)
        self._roots.pop(model, None)

    def _living(self) -> list[Optimizer]:
        return [optimizer for reference in self._optimizers if (optimizer := reference()) is not None]

    def _unwatched(self) -> list[Optimizer]:
        return [optimizer for optimizer in self._living() if optimizer not in self._watch_of]


class _Together(nn.Module):  # type: ignore[misc]  # mypy does not follow torch
    """Modules that a loop calls one by one, as if they were one model; never called itself."""

    def __init__(self, modules: list[nn.Module]) -> None:
        super().__init__()
        for number, module in enumerate(modules):
            self.add_module(f"{type(module).__name__}-{number}", module)


def _held(optimizer: Optimizer) -> set[int]:
    groups = getattr(optimizer, "param_groups", ())  # none yet while it is being made
    return {id(parameter) for group in groups for parameter in group["params"]}
