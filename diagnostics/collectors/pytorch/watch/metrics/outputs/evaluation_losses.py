"""Averages the losses that a script computes in its evaluations, without gradients."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from diagnostics.collectors.pytorch.discover.loss_calls import OF_CLASSES, OF_NUMBERS, Returned, evaluation_calls
from diagnostics.collectors.pytorch.watch.record.norms import taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel

EVALUATIONS = 256  # kept; of more, every second
PASSES = 512  # of an evaluation, the first
TOGETHER = 64  # losses that are read at once


class EvaluationLosses(TrainingProbe):
    """Records the last loss that follows each pass without gradients, by the number of steps before it."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._step = -1
        self._passes = self._rounds = 0
        self._every = 1  # of the evaluations
        self._latest: tuple[int, int, Tensor] | None = None  # of the latest pass: step, terms and mean of its loss
        self._pending: list[tuple[int, int, Tensor]] = []
        self._sums: dict[int, tuple[float, int]] = {}  # by step: sum and number of the terms

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Wait for the loss of a pass, which the model may compute itself."""
        self._keep_latest()
        if self._step != step:
            self._step, self._passes = step, 0
            self._rounds += 1
        self._passes += 1
        # In a compiled model, to listen would let the compiler compile the loss again.
        if self._passes <= PASSES and not self._rounds % self._every and not self.subject.compiled:
            evaluation_calls.join(self.heard, (*OF_CLASSES, *OF_NUMBERS))
        else:
            evaluation_calls.leave(self.heard)

    def heard(self, prediction: Tensor, target: Tensor) -> Returned:
        """Take the mean of a loss once it is computed."""
        step, terms = self._step, target.numel()

        def returned(mean: Tensor) -> None:
            self._latest = step, terms, mean

        return returned

    def on_training_again(self) -> None:
        """Hear no more losses of an evaluation."""
        self._keep_latest()
        evaluation_calls.leave(self.heard)

    def on_read(self, step: int) -> None:
        """Read the losses if there are many."""
        if len(self._pending) >= TOGETHER:
            self._read()

    def evaluations(self) -> list[tuple[int, float]]:
        """Return the mean loss of each evaluation, with the number of the step before it."""
        self._keep_latest()
        self._read()
        return [(max(0, step - 1), total / terms) for step, (total, terms) in sorted(self._sums.items())]

    def _keep_latest(self) -> None:
        if self._latest is not None:
            self._pending.append(self._latest)
            self._latest = None

    def _read(self) -> None:
        pending = taken(self._pending)
        host = to_host({number: mean for number, (_, _, mean) in enumerate(pending)})
        for number, (step, terms, _) in enumerate(pending):
            total, count = self._sums.get(step, (0.0, 0))
            self._sums[step] = total + float(host[number]) * terms, count + terms
        while len(self._sums) > EVALUATIONS:
            self._every *= 2
            self._sums = dict(sorted(self._sums.items())[::2])
