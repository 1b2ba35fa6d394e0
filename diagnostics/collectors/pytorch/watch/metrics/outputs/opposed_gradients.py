"""Compares the gradient of the output with the batch's own targets: which way does the loss push predictions?

Of a pass at most `MAX_NUMBERS` numbers are kept of output, gradient and target each.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from diagnostics.collectors.isolation.user_modes import call_without_user_modes
from diagnostics.collectors.pytorch.discover.batch_source import latest_batch
from diagnostics.collectors.pytorch.watch.record.norms import taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel, are_maximized
from diagnostics.facts.array import Array
from diagnostics.facts.course import OpposedGradients

from .pass_inputs import is_plain

MAX_NUMBERS = 4096  # numbers of a pass
PASSES = 24  # kept; of more every second is dropped, and only every second taken from then on
MIN_PASSES = 4  # passes
BOTH = 0.01  # share of the numbers of a mask that must be foreground, and that must be background
AGREE = 0.95  # share of them whose gradient points away from the target
LINE = 0.999  # cosine of a gradient and the error, of which it is a multiple
OWN = 0.1  # of what is missing to a cosine of 1 with the target alone: a gradient nearer to that may be a cost
WIDE = 8  # numbers of a row, from which on a mask is none; a single one may be the distance of a pair
KNOWN = 0.7  # correlation of outputs and targets in the first pass: the model was trained before


@dataclass
class _Pass:
    output: Tensor
    target: Tensor
    gradient: Tensor | None = None


class OutputPush(TrainingProbe):
    """Listens to the gradient of the output in sampled steps; copies stay on the device until they are read."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._pending: list[_Pass] = []
        self._seen: list[tuple[Array, Array, Array]] = []  # output, gradient, target
        self._every = 1
        self._count = 0
        self._wide = False

    def on_pass_end(self, step: int, output: Any, inputs: Any) -> None:
        """Record a pass of training whose target stands in the loader's batch, and the gradient of its output."""
        if not is_plain(output) or not output.is_floating_point() or not output.requires_grad or not output.ndim:
            return
        target = latest_batch.target_beside(inputs, output)
        if target is None or not is_plain(target) or not output.numel():
            return
        self._wide = output.numel() >= WIDE * len(output)
        self._count += 1
        if (self._count - 1) % self._every:
            return
        stride = -(-output.numel() // MAX_NUMBERS)
        seen = _Pass(_some(output, stride), _some(target, stride))

        pending = self._pending  # the graph may outlive the training, and is not to hold on to that

        def came(gradient: Tensor) -> None:
            if seen.gradient is None:
                seen.gradient = _some(gradient, stride)
                pending.append(seen)

        output.register_hook(functools.partial(call_without_user_modes, came))

    def on_read(self, step: int) -> None:
        """Bring the copies to the host."""
        pending = taken(self._pending)
        parts = [part for one in pending for part in (one.output, one.gradient, one.target)]
        host = to_host({number: part for number, part in enumerate(parts) if part is not None})
        for start in range(0, len(parts), 3):
            output, gradient, target = (np.array(host[start + part], np.float64) for part in range(3))
            self._seen.append((output, gradient, target))
        while len(self._seen) > PASSES:
            self._seen, self._every = self._seen[::2], 2 * self._every

    def facts(self) -> Iterator[OpposedGradients]:
        """Yield whether the training makes errors larger; nothing if there is too little to tell."""
        self.on_read(self.subject.steps)
        maximized = are_maximized(self.subject.optimizers)
        up = -1.0 if maximized else 1.0
        known = [
            (output, up * gradient, target)
            for output, gradient, target in self._seen
            if gradient.any() and all(np.isfinite(part).all() for part in (output, gradient, target))
        ]
        if len(known) < MIN_PASSES or _cosine(*(part - part.mean() for part in known[0][::2])) >= KNOWN:
            return
        of_masks = all(_is_mask(target) for _, _, target in known)
        if of_masks and not self._wide:
            return
        opposed = sum((_mask_opposed if of_masks else _error_opposed)(*one) for one in known)
        yield OpposedGradients(of_masks, len(known), opposed, maximized)


def _some(tensor: Tensor, stride: int) -> Tensor:
    return tensor.detach().reshape(-1)[::stride].float().clone()


def _is_mask(target: Array) -> bool:
    """Whether all numbers are 0 or 1, and there are enough of both."""
    return bool(((target == 0) | (target == 1)).all() and BOTH <= target.mean() <= 1 - BOTH)


def _mask_opposed(_output: Array, gradient: Array, target: Array) -> bool:
    """Whether a step against the gradient lowers the foreground and raises the background, nearly everywhere."""
    lowered, raised = (gradient[target == 1] > 0).mean(), (gradient[target == 0] < 0).mean()
    return bool(min(lowered, raised) >= AGREE)


def _error_opposed(output: Array, gradient: Array, target: Array) -> bool:
    """Whether the gradient is a negative multiple of the error: a step against it makes each error larger.

    Not where it is a multiple of the target alone: that may be a cost, which is to be made small.
    """
    along = _cosine(gradient, target - output)
    return along >= LINE and 1 - along <= OWN * (1 - _cosine(gradient, target))


def _cosine(one: Array, other: Array) -> float:
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / size if size else 0.0
