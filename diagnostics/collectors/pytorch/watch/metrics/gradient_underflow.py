"""Counts gradients that underflowed in float16, in sampled steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.norms import taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.array import Array
from diagnostics.facts.layers import UnderflowFacts

from .activation_ranges import ActivationRanges

STEPS = 64  # remembered
JUDGED = 64  # non-zero numbers that a gradient must have: of a few, one is always the least


class GradientUnderflow(TrainingProbe):
    """Counts how many numbers of each gradient are exactly the least of it; the counts stay on the device."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._layers, self._sizes = subject.layers, subject.layers.sizes()
        self._pending: list[tuple[int, tuple[int, ...], Tensor]] = []
        self._seen: deque[tuple[int, Array, Array, Array]] = deque(maxlen=STEPS)

    def on_gradients(self, step: int, gradients: list[Tensor], which: tuple[int, ...]) -> None:
        """Measure the gradients of a step, if a module computed in float16 in it."""
        if self.subject.probes[ActivationRanges].half_at != step:
            return
        with torch.no_grad():
            measured = torch.stack([_measure(gradient) for gradient in gradients])
        self._pending.append((step, which, measured))

    def on_read(self, step: int) -> None:
        """Read the measurements, and combine them by layer."""
        pending = taken(self._pending)
        host = to_host({number: measured for number, (*_, measured) in enumerate(pending)})
        for number, (step, which, _) in enumerate(pending):
            least, shares, zeros = self._by_layer(which, host[number].astype(np.float64))
            if self._seen and self._seen[-1][0] == step:  # of another optimizer
                before = self._seen.pop()
                least, shares, zeros = (
                    np.where(np.isnan(new), old, new)
                    for old, new in zip(before[1:], (least, shares, zeros), strict=True)
                )
            self._seen.append((step, least, shares, zeros))

    def facts(self) -> Iterator[UnderflowFacts]:
        """Yield the facts read so far."""
        if not self._seen:
            return
        steps, least, shares, zeros = zip(*self._seen, strict=True)
        yield UnderflowFacts(
            self._layers.names, np.array(steps), np.array(least), np.array(shares), np.array(zeros)
        )

    def _by_layer(self, which: tuple[int, ...], measured: Array) -> tuple[Array, Array, Array]:
        count = len(self._layers.names)
        least, at_least, nonzero, zeros, there = (np.zeros(count) for _ in range(5))
        least[:] = np.inf
        layers = self._layers.of_parameter[list(which)]
        for layer, size, (low, number, used) in zip(layers, self._sizes[list(which)], measured, strict=True):
            zeros[layer] += size - used
            there[layer] += size
            if used < JUDGED:
                continue
            if low < least[layer]:
                least[layer], at_least[layer] = low, 0.0
            at_least[layer] += number if low == least[layer] else 0.0
            nonzero[layer] += used
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(np.isfinite(least), least, np.nan), at_least / nonzero, zeros / there


def _measure(gradient: Tensor) -> Tensor:
    """Return (3,): the least absolute value that is not 0, how many numbers have it, how many are not 0."""
    size = gradient.abs()
    inf = torch.inf
    least = torch.where(size > 0, size, inf).amin()
    return torch.stack([least.double(), (size == least).sum().double(), (size > 0).sum().double()])
