"""Detects runs of steps that a loss scaler skips because gradients are not finite."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass
from diagnostics.collectors.pytorch.watch.record.norms import Layers
from diagnostics.collectors.pytorch.watch.record.step_log import SKIPPED, Gradient, NonFiniteStep


class SkippedSteps:
    """Records the starts of backward passes; checks their gradients once `SKIPPED` steps in a row were skipped.

    The only sign of a skipped step is that gradients are None when the next pass begins. Where they are set to
    zero instead, skipped steps are not detected, since reading them would wait for the device.

    Args:
        layers: of the model.
        safely: `FaultGuard.run`; the work belongs to the part "backward passes".
    """

    def __init__(self, layers: Layers, safely: Callable[..., None]) -> None:
        self._layers, self._safely = layers, safely
        self._step, self.count = -1, 0
        self._bad: Tensor | bool = True  # whether in all steps that were checked
        self._latest: Gradient | None = None

    def begins(self, step: int, held: list[Any]) -> None:
        """Record a backward pass, from within it.

        Args:
            step: number of steps that the optimizers have made.
            held: their parameters, with their numbers.
        """
        if step != self._step:
            self._step, self.count, self._bad, self._latest = step, 0, True, None
        if any(parameter.grad is not None for _, parameter in held):
            return  # one of the passes of an accumulation
        self.count += 1
        if self.count > SKIPPED:
            ends = functools.partial(self._safely, "backward passes", self._ends, held)
            torch.autograd.Variable._execution_engine.queue_callback(ends)

    def failure(self, kept: CapturedPass | None) -> NonFiniteStep | None:
        """Return the skipped step, with the batch size of `kept`; None if there is none."""
        if self._latest is None or not bool(self._bad):
            return None
        bad = ~torch.as_tensor(self._latest.norms).isfinite()
        which = tuple(number for number, one in zip(self._latest.which, bad.tolist(), strict=True) if one)
        size = 0 if kept is None else kept.size
        return NonFiniteStep(self._step, None, False, which, 0, size, None, self.count)

    def _ends(self, held: list[Any]) -> None:
        gradients, which = self._layers.gradients(held)
        if gradients:
            norms = self._layers.norms(gradients)
            self._latest = Gradient(norms, which)
            self._bad = ~norms.sum().isfinite() & self._bad
