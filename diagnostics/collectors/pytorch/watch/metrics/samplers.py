"""Runs the measurements of sampled steps: activations, units, recurrent layers, gradient underflow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.scoped_hooks import ModuleHooks
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.layers import RangeFacts

from .activation_ranges import ActivationRanges
from .gradient_underflow import GradientUnderflow
from .recurrent_gradients import RecurrentGradients
from .unit_activity import UnitActivity

# In a model with more, modules are hooked in one sample of SELDOM: it costs as much as two steps, most of them for
# Python's garbage collection, which goes through all objects for so many new ones.
MANY_MODULES = 1000
SELDOM = 4


class Samplers(TrainingProbe):
    """The measurements of modules, which share their hooks."""

    part = "activations"

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        model, safely = subject.model, subject.guard
        self._hooks = ModuleHooks()
        self._ranges = ActivationRanges(model, partial(safely, "activations"), self._hooks)
        self._activity = UnitActivity(model, partial(safely, "activations"), self._hooks)
        self._recurrences = RecurrentGradients(model, partial(safely, "recurrences"), self._hooks)
        self._underflow = GradientUnderflow(subject.layers)
        self._looks = (self._ranges, self._activity, self._recurrences)
        self._open = False
        self._many = sum(1 for _ in model.modules()) > MANY_MODULES
        self._count = 0

    def on_pass_begin(self, step: int, args: Any, kwargs: Any) -> None:
        """Hook the modules."""
        if self.subject.compiled:
            return
        self.on_unhooked()
        self._count += 1
        if self._many and self._count % SELDOM != 1:
            return
        self._open = True
        for look in self._looks:
            look.open(step)
        self._hooks.attach()

    def on_unhooked(self) -> None:
        """Remove all hooks."""
        if self._open:
            self._open = False
            self._hooks.close()
            for look in self._looks:
                look.close()

    def on_gradients(self, step: int, gradients: list[Tensor], which: tuple[int, ...]) -> None:
        """Measure the gradients of a step, if a module computed in float16 in it."""
        if self._ranges.half_at == step:
            self._underflow.look(step, gradients, which)

    def on_read(self, step: int) -> None:
        """Read the measurements from the device."""
        for look in (*self._looks, self._underflow):
            look.read()

    def ranges(self) -> RangeFacts | None:
        """Return the ranges of the activations; None if none were measured."""
        return self._ranges.facts()

    def facts(self) -> Iterator[Any]:
        """Yield the other facts."""
        yield from (self._activity.facts(), self._recurrences.facts(), self._underflow.facts())
