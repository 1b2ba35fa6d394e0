"""Measures what 16-bit numbers lose: updates that are rounded away, and gradients that underflow in float16."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.watch.metrics.activation_ranges import ActivationRanges
from diagnostics.collectors.pytorch.watch.record.norms import Layers, taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.array import Array
from diagnostics.facts.layers import RoundingFacts, UnderflowFacts

TENSORS = 8  # of an optimizer, the largest ones
WEIGHTS = 256  # of each
HALF = (torch.bfloat16, torch.float16)
STEPS = 64  # with float16 activations, remembered
JUDGED = 64  # non-zero numbers that a gradient must have: of a few, one is always the least


@dataclass
class _Seen:
    """Tensors (n,): the values at first, whether they moved, and of their gradients how many and the sum."""

    first: Tensor
    moved: Tensor
    with_gradient: Tensor
    gradients: Tensor


@dataclass
class _Sample:
    """What was seen of one optimizer's weights."""

    chosen: list[nn.Parameter]
    layers: tuple[str, ...]
    first_step: int = -1
    last_step: int = -1
    count: int = 0
    seen: _Seen | None = None


class RoundedUpdates(TrainingProbe):
    """Samples of the weights of each optimizer; the counts stay on the device.

    Only of PyTorch's own optimizers, which round each update to the dtype of the weight: others may keep what was
    lost, or round at random.
    """

    part = "rounded updates"

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        pairs = zip(subject.optimizers, subject.held, strict=True)
        self._samples = [_chosen(subject.layers, *pair) for pair in pairs]

    def on_step(self, step: int, number: int) -> None:
        """Compare the weights of an optimizer, before its step."""
        sample = self._samples[number]
        if sample is None or not _has_rate(self.subject.optimizers[number]):
            return
        with torch.no_grad():
            values = torch.cat([_thinned(parameter.detach()) for parameter in sample.chosen])
            sizes = torch.cat([_gradient(parameter) for parameter in sample.chosen]).abs().float()
            if sample.seen is None:
                sample.first_step = step
                nothing = torch.zeros_like(values, dtype=torch.bool)
                sample.seen = _Seen(values, nothing, torch.zeros_like(sizes), torch.zeros_like(sizes))
            sample.seen.moved |= values != sample.seen.first
            sample.seen.with_gradient += sizes != 0
            sample.seen.gradients += sizes
        sample.last_step, sample.count = step, sample.count + 1

    def facts(self) -> Iterator[RoundingFacts]:
        """Read the sample of the optimizer that has the most weights in half precision, if any has."""
        there = [
            (sample, sample.seen, number)
            for number, sample in enumerate(self._samples)
            if sample is not None and sample.seen is not None
        ]
        if not there:
            return
        sample, seen, number = max(there, key=lambda one: len(one[1].first))
        tensors = (seen.first.float(), seen.moved, seen.with_gradient, seen.gradients)
        host = to_host(dict(enumerate(tensors)))
        yield RoundingFacts(
            dtype=str(seen.first.dtype).removeprefix("torch."),
            optimizer=type(self.subject.optimizers[number]).__name__,
            layers=sample.layers,
            first_step=sample.first_step,
            last_step=sample.last_step,
            samples=sample.count,
            weights=host[0].copy(),
            moved=host[1].copy(),
            with_gradient=host[2].astype(int),
            gradients=host[3] / sample.count,
        )


class GradientUnderflow(TrainingProbe):
    """Counts how many numbers of each gradient are exactly the least of it; the counts stay on the device."""

    part = "gradient underflow"

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


def _chosen(layers: Layers, optimizer: Any, held: list[tuple[int, nn.Parameter]]) -> _Sample | None:
    """Choose the largest tensors in half precision; None if there are none, or rounding is not known."""
    if type(optimizer).__module__.partition(".")[0] != "torch":
        return None
    half = [(number, p) for number, p in held if p.dtype in HALF and type(p.data) is Tensor and p.is_contiguous()]
    if not half:
        return None
    kind = half[0][1].dtype, half[0][1].device
    same = [pair for pair in half if (pair[1].dtype, pair[1].device) == kind]
    largest = sorted(same, key=lambda pair: -pair[1].numel())[:TENSORS]
    names = (layers.names[layers.of_parameter[number]] for number, _ in largest)
    return _Sample([parameter for _, parameter in largest], tuple(dict.fromkeys(names)))


def _has_rate(optimizer: Any) -> bool:
    """Whether a group has a learning rate other than 0, as far as that can be told without waiting."""
    rates = [group.get("lr", 0.0) for group in optimizer.param_groups]
    return any(isinstance(rate, Tensor) or rate > 0 for rate in rates)


def _thinned(values: Tensor) -> Tensor:
    """Return at most `WEIGHTS` numbers, evenly spaced."""
    return values.reshape(-1)[:: max(1, values.numel() // WEIGHTS)][:WEIGHTS]


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Return the gradient of the same numbers; 0 where there is none."""
    gradient = parameter.grad
    if gradient is None or gradient.layout is not torch.strided:
        return torch.zeros_like(_thinned(parameter.detach()))
    return _thinned(gradient.detach())
