"""Keeps what models return without gradients, until an optimizer steps: a metric may be about it."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.batch import certain_prediction
from diagnostics.collectors.shared.arrays import to_array
from diagnostics.facts.array import Array
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import subscribe
from diagnostics.taps.torch import ModuleCall

LARGEST = 2**18  # numbers that are kept; the latest of them
PASSES = 4096  # likewise
MODULES = 4  # that may have made the predictions


class EvaluatedOutputs:
    """The outputs of the latest passes without gradients. The copies stay on the device until a metric is called.

    Attributes:
        passes: without gradients so far, of whatever module.
        steps: of optimizers so far.
    """

    def __init__(self, guard: FaultGuard) -> None:
        """Listen until `close`; `guard` runs the work."""
        self._attempt = guard.attempt
        self.passes = self.steps = self._numbers = 0
        self._outputs: deque[tuple[int, Tensor]] = deque()  # and the number of the module, which may be gone
        self.close = subscribe(
            guard.attempt, (taps.module_call.before, self._called), (taps.optimizer_step.after, self._stepped)
        )

    def of_rows(self, rows: int) -> tuple[Array, tuple[int, ...]] | None:
        """Return the latest outputs of one module that have so many rows, and the rows of each pass."""
        for module in list(dict.fromkeys(number for number, _ in reversed(self._outputs)))[:MODULES]:
            parts, found = list[Tensor](), 0  # the latest first
            for output in (output for number, output in reversed(self._outputs) if number == module):
                if found >= rows or (parts and output.shape[1:] != parts[0].shape[1:]):
                    break
                parts.append(output)
                found += len(output)
            if found == rows and (values := to_array(torch.cat(parts[::-1]))) is not None:
                return values, tuple(map(len, parts[::-1]))
        return None

    def _called(self, call: ModuleCall) -> None:
        if not torch.is_grad_enabled():
            self.passes += 1
            if not isinstance(call.module, nn.modules.loss._Loss):
                call.on_return.append(partial(self._attempt, self._returned, id(call.module)))

    def _returned(self, module: int, output: Any) -> None:
        output = certain_prediction(output)
        if type(output) is not Tensor or output.layout is not torch.strided or output.is_nested or output.is_meta:
            return
        if output.ndim and output.is_floating_point() and 0 < output.numel() <= LARGEST:
            self._outputs.append((module, output.detach().clone()))
            self._numbers += output.numel()
            while self._numbers > LARGEST or len(self._outputs) > PASSES:
                self._numbers -= self._outputs.popleft()[1].numel()

    def _stepped(self, *_arguments: Any, **_options: Any) -> None:
        self.steps += 1
        self._outputs.clear()
        self._numbers = 0
