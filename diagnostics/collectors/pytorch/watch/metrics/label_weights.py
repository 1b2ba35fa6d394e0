"""Measures what a label weighs in each of the backward passes whose gradients are added up for a step."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.pytorch.discover.loss_calls import RecordedLoss, Returned, hear_labels
from diagnostics.collectors.pytorch.watch.record.norms import taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.array import Array
from diagnostics.facts.training import LabelWeightFacts
from diagnostics.facts.where import Where
from diagnostics.taps.torch import backward, on_gradient

STEPS = 64  # remembered
PASSES = 256  # of a step; more are a step that is never made
ALIKE = 1.01  # weights within one loss, in the half precision that its gradient may have


class _Pass(NamedTuple):
    """A loss that was differentiated.

    Attributes:
        number: of the backward pass.
        classes: that it tells apart.
        measured: float32 (3,): how many labels it counts, and the lowest and highest weight of one of them.
    """

    number: int
    classes: int | None
    measured: Tensor


class LabelWeights(TrainingProbe):
    """Hears the losses of sampled steps once a step has taken several forward passes.

    What a label weighs is the gradient that its term of the loss gets: it includes whatever the loop divides by,
    wherever it does so. The numbers stay on the device until they are read.
    """

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._passes = self._began = 0
        self._end: list[Callable[[], None]] = []
        self._differentiated: list[_Pass] = []  # of the step that is being made
        self._pending: list[tuple[int, list[Tensor]]] = []
        self._read: deque[tuple[int, Array]] = deque(maxlen=STEPS)
        self._where: Where | None = None

    def on_pass_begin(self, step: int, args: Any, kwargs: Any) -> None:
        """Hear the losses of this step, if the last one that was sampled took several passes."""
        self._leave()
        accumulates, self._passes, self._began = self._passes > 1, 0, backward.passes
        if accumulates and not self.subject.compiled:  # a compiled loss would be compiled again
            self._end.append(hear_labels(self._hear, self._is_mine, self.subject.guard))

    def on_pass_end(self, step: int, output: Any, inputs: Any) -> None:
        """Count the passes."""
        self._passes += 1

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Give the step up: evaluations hear losses themselves."""
        self._leave()

    def on_training_again(self) -> None:
        """Give the step up: the training may be over."""
        self._leave()

    def on_step(self, step: int, number: int) -> None:
        """Keep what was heard, if each backward pass differentiated one loss of the same classes."""
        found, passes = self._differentiated, backward.passes - self._began
        heard = bool(self._end)
        self._leave()
        numbers, classes = ({part[place] for part in found} for place in (0, 1))
        if heard and len(numbers) == len(found) == passes > 1 and len(classes) == 1:
            self._pending.append((step, [part.measured for part in found]))

    def on_read(self, step: int) -> None:
        """Read the numbers; steps with different weights within one loss say nothing."""
        for made, measured in taken(self._pending):
            host = to_host(dict(enumerate(measured)))
            rows = np.array([host[place] for place in range(len(measured))])
            if np.isfinite(rows).all() and (rows[:, 1] > 0).all() and (rows[:, 2] <= ALIKE * rows[:, 1]).all():
                self._read.append((made, rows))

    def facts(self) -> Iterator[LabelWeightFacts]:
        """Yield what was read so far."""
        self.on_read(-1)
        if self._read:
            steps, rows = zip(*self._read, strict=True)
            yield LabelWeightFacts(
                steps=np.array(steps),
                counts=tuple(one[:, 0].astype(np.int64) for one in rows),
                weights=tuple(one[:, 1] for one in rows),
                where=self._where,
            )

    def _leave(self) -> None:
        self._differentiated = []
        while self._end:
            self._end.pop()()

    def _is_mine(self) -> bool:
        return torch.is_grad_enabled() and self.subject.is_own() and not is_own_run()

    def _hear(self, call: RecordedLoss) -> Returned | None:
        if call.weighted or call.reduction not in ("mean", "sum", "none"):
            return None
        if self._where is None:
            self._where = script_line()
        counted, reduction, classes = call.target != call.ignore_index, call.reduction, call.num_classes
        passes, probe = backward.passes, weakref.ref(self)  # the graph may outlive the training

        def differentiated(gradient: Tensor) -> None:
            mine = probe()
            # `torch.autograd.grad` adds nothing to the gradients of the step.
            if mine is None or not mine._end or backward.passes == passes or len(mine._differentiated) >= PASSES:
                return
            with torch.no_grad():
                measured = _measured(gradient.float(), counted, reduction)
            mine._differentiated.append(_Pass(backward.passes, classes, measured))

        run = partial(self.subject.guard.run, self.part, differentiated)
        return lambda result: on_gradient(result, run) if result.requires_grad else None


def _measured(gradient: Tensor, counted: Tensor, reduction: str) -> Tensor:
    """Return (3,): how many labels count, and the lowest and highest weight of one."""
    if reduction == "none":
        counted = counted & (gradient != 0)  # a mask leaves others out
        lowest = torch.where(counted, gradient, torch.inf).amin()
        return torch.stack([counted.sum().float(), lowest, torch.where(counted, gradient, 0.0).amax()])
    labels = counted.sum().float()
    weight = gradient / labels if reduction == "mean" else gradient
    return torch.stack([labels, weight, weight])
