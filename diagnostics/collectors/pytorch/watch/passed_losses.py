"""Takes the losses that a loop hands over."""

from __future__ import annotations

from collections import deque
from typing import Any

from torch import Tensor

from diagnostics.collectors.pytorch.local_tensors import why_unreadable
from diagnostics.collectors.pytorch.watch.record.step_log import loss_number
from diagnostics.errors import what

from .pending_steps import PendingSteps

EVALUATIONS = 4096  # evaluation losses kept


class PassedLosses:
    """The losses of one loop.

    Args:
        pending: takes those of training.
        every: calls without a step, after which they are looked at.
        optimizer_steps: whether there is an optimizer to step.
        uncovered: gets the reason where a loss is not a number.

    Attributes:
        evaluations: of each evaluation, the latest step and the loss.
        unstepped: times a loss was handed over after forward passes while no optimizer had stepped since the last.
    """

    def __init__(
        self, pending: PendingSteps, every: int, optimizer_steps: bool, uncovered: dict[str, str]
    ) -> None:
        self._pending, self._every, self._optimizer_steps = pending, every, optimizer_steps
        self._uncovered = uncovered
        self.evaluations: deque[tuple[int, float]] = deque(maxlen=EVALUATIONS)
        self.unstepped = 0
        self._called_at = 0

    def take(self, loss: Any, steps: int) -> None:
        """Take a training loss after so many steps; None if the loop has none."""
        passes = self._pending.next.passes
        why_not = why_unreadable([loss]) if isinstance(loss, Tensor) else ""
        number = None if loss is None or why_not else loss_number(loss)
        if number is not None:
            self._pending.add_loss(number)
        elif loss is not None:
            self._uncovered["loss"] = why_not or f"step() was given {_given(loss)}, which is not a number"
        if self._optimizer_steps and self._called_at == steps and passes:
            self.unstepped += 1
            if self.unstepped % self._every == 0:
                self._pending.look_at_unfinished(steps)
        self._called_at = steps

    def take_evaluation(self, loss: Any, steps: int) -> None:
        """Take an evaluation loss after so many steps."""
        number = None if isinstance(loss, Tensor) and why_unreadable([loss]) else loss_number(loss)
        if number is None:
            self._uncovered["evaluation"] = f"evaluated() was given {_given(loss)}, which is not a number"
        else:
            self.evaluations.append((max(0, steps - 1), float(number)))


def _given(loss: Any) -> str:
    if isinstance(loss, Tensor):
        return f"a tensor of {str(loss.dtype).removeprefix('torch.')} {tuple(loss.shape)}"
    return f"{what(loss)} too large for a float" if isinstance(loss, int) else what(loss)
