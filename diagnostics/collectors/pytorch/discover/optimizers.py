"""Knows the optimizers of a script, which parameters they hold, and models that are trained without one."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import LBFGS, Optimizer

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.where import Where

MAX_MODELS = 8  # models whose training is watched from its first step on
SHORT = 16  # steps of a later model, before it is watched
MAX_SEARCHES = 8  # for the modules of an optimizer
CHANGES = 2  # of the weights between backward passes, after which the script trains them
LOOKS = 20  # backward passes of a model, after which it counts as not trained
NUMBERS = 64  # of each parameter that are compared, the first


class ScriptOptimizers:
    """The optimizers that a script has made, without keeping them alive.

    Attributes:
        count: how many were made.
    """

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[Optimizer]] = {}  # by number, in order; of those that live
        self._made_at: IdentityMap[Optimizer, Where | None] = IdentityMap()
        self.count = self._searches = 0

    def add(self, optimizer: Optimizer) -> None:
        """Add one, which may hold no parameters yet."""
        self._made_at[optimizer] = script_line()
        self.count, number, references = self.count + 1, self.count, self._references
        references[number] = weakref.ref(optimizer, lambda _: references.pop(number, None))

    def made_at(self, optimizers: Iterable[Optimizer]) -> Where | None:
        """Return the line of the script that created the first of some optimizers; None if not known."""
        return next((where for each in optimizers if (where := self._made_at.get(each)) is not None), None)

    def living(self) -> list[Optimizer]:
        """List those that the script still has."""
        return [
            optimizer for reference in list(self._references.values()) if (optimizer := reference()) is not None
        ]

    def all_held(self) -> set[int]:
        """Return the identities of all parameters that they hold."""
        return {identity for optimizer in self.living() for identity in held_by(optimizer)}

    def owners_of(self, optimizer: Optimizer) -> list[nn.Module]:
        """Find the modules that hold the parameters of an optimizer, where the script has called none of them.

        It calls their ``forward`` itself, or their layers by functions. Python's objects are searched, which takes
        some milliseconds, for a few optimizers.
        """
        if self._searches == MAX_SEARCHES:
            return []
        self._searches += 1
        held = held_by(optimizer)
        modules = [thing for thing in gc.get_objects() if issubclass(type(thing), nn.Module)]
        return [
            module
            for module in modules
            if not isinstance(module, torch.jit.ScriptModule)  # takes no hooks
            and held.intersection(id(tensor) for part in _parts(module) for tensor in part.values())
        ]

    def is_meant_for(self, optimizer: Optimizer, model: nn.Module, idle: bool) -> bool:
        """Whether an optimizer was made for another model than this one, which is trained and which none holds.

        It holds the parameters of a discarded model with the same architecture, or of one that gets no gradients.
        A target network gets none itself. An optimizer of a temperature or an image has tensors of other shapes,
        which get gradients, and one of float32 copies of half-precision weights has another dtype.

        Args:
            optimizer: it makes a step.
            model: the script calls it.
            idle: whether the parameters of the optimizer had no gradients so far.
        """
        trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        taken = self.all_held()
        kinds = {(parameter.shape, parameter.dtype) for parameter in trainable}
        return (
            all(id(parameter) not in taken for parameter in trainable)
            and any(parameter.grad is not None for parameter in trainable)
            and (idle or {(p.shape, p.dtype) for p in _parameters(optimizer)} == kinds)
        )


class ShortTrainings:
    """Puts off watching after the first models: a search or a sweep trains hundreds for a few steps each.

    Attributes:
        watched: how many models are, or were, watched.
        count: how many trainings have not made enough steps to be watched.
    """

    def __init__(self) -> None:
        self.watched = self.count = 0
        self._modules: IdentityMap[nn.Module, None] = IdentityMap()
        self._steps: IdentityMap[Optimizer, int] = IdentityMap()

    def puts_off(self, module: nn.Module) -> bool:
        """Return whether a new model is watched only once its training is no short one."""
        if self.watched < MAX_MODELS:
            return False
        self._modules[module] = None
        return True

    def waits(self, optimizer: Optimizer) -> bool:
        """Count a step of an optimizer that is not watched; return whether to wait for more of them."""
        steps = self._steps.get(optimizer, 0)
        if self.watched < MAX_MODELS or steps == SHORT:
            return False
        if not steps:
            held = held_by(optimizer)
            if not any(held.intersection(map(id, module.parameters())) for module in list(self._modules)):
                return False
            self.count += 1
        self._steps[optimizer] = steps + 1
        self.count -= steps + 1 == SHORT
        return True


def is_idle(optimizer: Optimizer) -> bool:
    """Whether no parameter of an optimizer has a gradient, so that a step does nothing.

    What LBFGS does is not known before the step: it computes the gradients in it.
    """
    return not isinstance(optimizer, LBFGS) and all(p.grad is None for p in _parameters(optimizer))


class HandUpdates:
    """Notices models whose weights a script changes itself, without an optimizer.

    Some weights of each are compared at its backward passes, until they have changed or are left alone.
    """

    def __init__(self) -> None:
        self._before: IdentityMap[nn.Module, list[Tensor]] = IdentityMap()
        self._changes: IdentityMap[nn.Module, int] = IdentityMap()
        self._looks: IdentityMap[nn.Module, int] = IdentityMap()

    def found(self, modules: list[nn.Module]) -> list[nn.Module]:
        """Return the modules whose weights have changed between backward passes.

        Args:
            modules: that have trainable parameters; called when the gradients of a backward pass are there.
        """
        for module in modules:
            looks = self._looks[module] = self._looks.get(module, 0) + 1
            if looks > LOOKS:
                continue
            trained = [p for p in module.parameters() if p.grad is not None]
            now = [parameter.detach().reshape(-1)[:NUMBERS].clone() for parameter in trained]
            before = self._before.get(module)
            if before is not None and len(before) == len(now):
                changed = any(not bool((one == other).all()) for one, other in zip(before, now, strict=True))
                self._changes[module] = self._changes.get(module, 0) + changed
            self._before[module] = now
        return [module for module in modules if self._changes.get(module, 0) >= CHANGES]


def _parameters(optimizer: Optimizer) -> Iterator[Tensor]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def _parts(module: nn.Module) -> list[dict[str, Any]]:
    """Return the parameters of a module and of those within; none of one whose constructor was not called."""
    if "_parameters" not in vars(module):
        return []
    return [vars(part).get("_parameters", {}) for part in module.modules()]


def held_by(optimizer: Optimizer) -> set[int]:
    """Return the identities of the parameters that an optimizer holds."""
    groups = getattr(optimizer, "param_groups", ())  # none yet while it is being made
    return {id(parameter) for group in groups for parameter in group["params"]}
