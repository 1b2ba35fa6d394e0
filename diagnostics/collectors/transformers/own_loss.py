"""Hears the loss that a Trainer's own `compute_loss` calls: its name, and what it gets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.discover.loss_calls import LossRecorder, RecordedLoss

SQUASHING = ("softmax", "sigmoid")  # what makes probabilities of a model's logits


class OwnLoss:
    """Records the calls of losses within a block.

    Attributes:
        call: the only call, if its result was the whole loss and it got probabilities; None otherwise.
        classes: of the first pass whose whole loss was one cross entropy: its target, and the label that it leaves
            out; None if there was none.
    """

    def __init__(self) -> None:
        self.call: RecordedLoss | None = None
        self.classes: tuple[Tensor, int | None] | None = None

    @contextmanager
    def heard(self) -> Iterator[LossRecorder]:
        """Record the calls within; pass the loss to `take` before the end."""
        calls = LossRecorder(lambda call: None, FaultGuard())
        calls.open(lambda: True)
        try:
            yield calls
        finally:
            calls.close()

    def take(self, calls: LossRecorder, loss: object) -> None:
        """Take the only call, if the loss is its result."""
        if len(calls.heard) != 1 or not isinstance(loss, Tensor):
            return
        call = calls.heard[0]
        if call.result is None or call.result() is not loss:
            return
        if call.made_by in SQUASHING:
            self.call = call
        if call.indexed and self.classes is None:
            self.classes = call.target, call.ignore_index
