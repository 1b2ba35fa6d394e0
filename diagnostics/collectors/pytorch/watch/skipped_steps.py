"""Notices that one step after the other is left out because its gradients are not finite, as loss scalers do."""

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
    """Is told when backward passes begin; looks at what they leave once `SKIPPED` steps in a row were left out.

    Nothing tells of a step that a scaler leaves out, but gradients that are gone when the next pass begins. Where
    they are set to zero instead nothing is known, for to look would be to wait for the device.

    Args:
        layers: of the model.
        safely: does work as the part "backward passes", so that a fault is not raised into the script.
    """

    def __init__(self, layers: Layers, safely: Callable[..., None]) -> None:
        self._layers, self._safely = layers, safely
        self._step, self.count = -1, 0
        self._bad: Tensor | bool = True  # whether in all steps that were looked at
        self._latest: Gradient | None = None

    def begins(self, step: int, held: list[Any]) -> None:
        """Take note of a backward pass, from within.

        Args:
            step: how many steps the optimizers have made.
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
        """Return the step that is not made, with the size of the batch of `kept`; None if there is none."""
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
