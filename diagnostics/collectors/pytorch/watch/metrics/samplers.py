"""Runs the measurements of sampled steps: activations, units, recurrent layers, gradient underflow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from diagnostics.collectors.pytorch.watch.record.norms import Layers
from diagnostics.collectors.pytorch.watch.record.scoped_hooks import ModuleHooks
from diagnostics.facts.layers import RangeFacts

from .activation_ranges import ActivationRanges
from .gradient_underflow import GradientUnderflow
from .recurrent_gradients import RecurrentGradients
from .unit_activity import UnitActivity

# In a model with more, modules are hooked in one sample of SELDOM: it costs as much as two steps, most of them for
# Python's garbage collection, which goes through all objects for so many new ones.
MANY_MODULES = 1000
SELDOM = 4


class Samplers:
    """The measurements of one model.

    Args:
        model: its hooks are there from `open` to `close`.
        layers: its parameters.
        safely: `FaultGuard.run`.
    """

    def __init__(self, model: nn.Module, layers: Layers, safely: Callable[..., None]) -> None:
        self._hooks = ModuleHooks()
        self._ranges = ActivationRanges(model, partial(safely, "activations"), self._hooks)
        self._activity = UnitActivity(model, partial(safely, "activations"), self._hooks)
        self._recurrences = RecurrentGradients(model, partial(safely, "recurrences"), self._hooks)
        self._underflow = GradientUnderflow(layers)
        self._looks = (self._ranges, self._activity, self._recurrences)
        self._open = False
        self._many = sum(1 for _ in model.modules()) > MANY_MODULES
        self._count = 0

    def open(self, step: int) -> None:
        """Measure the forward pass that is about to run."""
        self.close()
        self._count += 1
        if self._many and self._count % SELDOM != 1:
            return
        self._open = True
        for look in self._looks:
            look.open(step)
        self._hooks.attach()

    def close(self) -> None:
        """Remove all hooks."""
        if self._open:
            self._open = False
            self._hooks.close()
            for look in self._looks:
                look.close()

    def gradients(self, step: int, gradients: list[Tensor], which: tuple[int, ...]) -> None:
        """Measure the gradients of a step, if a module computed in float16 in it."""
        if self._ranges.half_at == step:
            self._underflow.look(step, gradients, which)

    def read(self) -> None:
        """Read the measurements from the device."""
        for look in (*self._looks, self._underflow):
            look.read()

    def ranges(self) -> RangeFacts | None:
        """Return the ranges of the activations; None if none were measured."""
        return self._ranges.facts()

    def facts(self) -> tuple[Any, ...]:
        """Return the other facts; None for each that was not measured."""
        return self._activity.facts(), self._recurrences.facts(), self._underflow.facts()
