"""Hears the token losses of early steps: how many targets each counts, and what it weighs in the gradient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.pytorch.discover.loss_calls import RecordedLoss, Returned, listen
from diagnostics.collectors.pytorch.saved_tensors import saved
from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.loss_call import AccumulatedLosses
from diagnostics.taps.torch import on_gradient

LAST = 7  # of the steps that are heard, from the second one on: until then every backward pass is counted
MAX_CALLS = 1024  # in these steps
LAYOUT = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "ToCopyBackward0", "CloneBackward0")


@dataclass
class _Loss:
    """A call; its numbers stay on the device until they are read."""

    step: int
    rows: int
    counted: Tensor
    is_mean: bool
    weight: Tensor | None = None


class TokenLosses(TrainingProbe):
    """Listens to cross entropies over several positions in each row, in steps that may have several passes."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._leave: Callable[[], None] | None = None
        self._heard: list[_Loss] = []
        self._backwards = Counter[int]()

    def on_training_begin(self) -> None:
        """Listen from the second step on."""
        if self._leave is None and not self.subject.compiled:
            self._leave = listen(("cross_entropy",), self._hear, self._is_mine, FaultGuard())

    def on_backward(self, step: int) -> None:
        """Count the passes of a step."""
        if self._leave is not None:
            self._backwards[step] += 1

    def on_training_again(self) -> None:
        """Listen no more: what follows an evaluation is not needed, and at the end nothing follows."""
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _is_mine(self) -> bool:
        return torch.is_grad_enabled() and self.subject.is_own() and not is_own_run()

    def _hear(self, name: str, given: dict[str, Any]) -> Returned | None:
        step = self.subject.steps
        if step > LAST or len(self._heard) >= MAX_CALLS:
            self.on_training_again()
            return None
        prediction, target = given.get("input"), given.get("target")
        if (
            prediction is None
            or type(prediction) is not Tensor
            or type(target) is not Tensor
            or not prediction.requires_grad
            or not step
        ):
            return None
        call, rows = RecordedLoss.of(name, given), _rows(prediction)
        if rows is None or not call.indexed or call.weighted or call.reduction not in ("mean", "sum"):
            return None
        loss = _Loss(step, rows, (call.target != call.ignore_index).sum(), call.reduction == "mean")

        def came(gradient: Tensor) -> None:
            loss.weight = gradient.detach().clone() if loss.weight is None else loss.weight + gradient.detach()

        self._heard.append(loss)
        return lambda result: on_gradient(result, came)

    def facts(self) -> Iterator[AccumulatedLosses]:
        """Yield the steps whose gradient comes from several of these losses, one for each pass."""
        there = [
            (loss, loss.weight) for loss in self._heard if loss.weight is not None and loss.weight.numel() == 1
        ]
        pairs = [torch.stack((loss.counted.float(), weight.float().reshape(()))) for loss, weight in there]
        host = to_host(dict(enumerate(pairs)))
        steps: dict[int, list[tuple[float, float, float]]] = {}
        for number, (loss, _) in enumerate(there):
            targets, weight = map(float, host[number])
            of_mean = weight if loss.is_mean else weight * targets
            steps.setdefault(loss.step, []).append((loss.rows, targets, of_mean))
        whole = [
            np.array(of_step)
            for step, of_step in steps.items()
            if len(of_step) == self._backwards[step] > 1 and step < self.subject.steps
        ]
        if whole:
            yield AccumulatedLosses(*(tuple(one[:, place] for one in whole) for place in range(3)))


def _rows(prediction: Tensor) -> int | None:
    """Return the rows of the scores of tokens, before they were flattened; None if rows have one score each."""
    if prediction.ndim > 2:
        return len(prediction)
    node: Any = prediction.grad_fn
    for _ in LAYOUT:
        if type(node).__name__ not in LAYOUT:
            return None
        sizes = saved(node, "self_sym_sizes")
        if sizes is not None and len(sizes) > 2:
            return int(sizes[0])
        node = node.next_functions[0][0]
    return None
