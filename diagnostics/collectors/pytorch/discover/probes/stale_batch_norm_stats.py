"""Finds an evaluation of an average of a trained model that has its weights, and not its running statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.discover.loop_probe import LoopProbe
from diagnostics.facts.calls import ObjectLedger

MIN_BATCHES = 20  # batches that the trained model's statistics have seen
MAX_LOOKS = 16  # at one instance: each reads from the device
SAMPLE = 64  # numbers of a weight
STARTS = 4  # of trainings of one class
CLASSES = 16


class StaleBatchNormStats(LoopProbe):
    """Looks at the other instances of a trained class that are evaluated: an average of its weights, or a copy.

    An instance that has the weights of a training's start is a baseline. One that was never given weights of the
    trained model cannot be told from it by its statistics, so its weights have to be close to the trained ones.
    """

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        # By class: what watches its latest loop, and the weights that trainings began with.
        self._starts: dict[type[nn.Module], tuple[Any, list[tuple[Tensor, ...]]]] = {}
        self._looks: IdentityMap[nn.Module, int] = IdentityMap()
        self._found: IdentityMap[nn.Module, tuple[Any, ObjectLedger]] = IdentityMap()

    def on_loop(self, model: nn.Module, watching: Any, before: Any) -> None:
        """Record the weights of a model whose training begins."""
        if _norms(model):
            _, starts = self._starts.pop(type(model), (None, []))
            self._starts[type(model)] = watching, [*starts[: STARTS - 1], _samples(model)]
            while len(self._starts) > CLASSES:
                del self._starts[next(iter(self._starts))]

    def on_evaluation(self, module: nn.Module, inputs: Any) -> None:
        """Look at a module in evaluation mode."""
        wanted = type(module) in self._starts and self._looks.get(module, 0) < MAX_LOOKS
        if module.training or not wanted:
            return
        trained = list(self.subject.watched_by)
        if any(module is other for other in trained):
            self._looks[module] = MAX_LOOKS
            return
        self._looks[module] = self._looks.get(module, 0) + 1
        self._found.pop(module, None)
        own = _norms(module)
        left = [name for name, norm in own.items() if _is_untouched(norm)]
        if not left or len(left) < len(own):
            return
        for other in trained:
            theirs = _norms(other)
            if (
                type(other) is not type(module)
                or theirs.keys() != own.keys()
                or not all(map(_has_moved, theirs.values()))
            ):
                continue
            mine, now = _samples(module), _samples(other)
            watching, starts = self._starts[type(module)]
            if any(_fit(mine, start) and all(map(torch.equal, mine, start)) for start in starts):
                return
            if _is_closer(mine, now, starts):
                counted = max(int(norm.num_batches_tracked) for norm in theirs.values())
                name = type(module).__name__
                ledger = ObjectLedger(name, stale_layers=tuple(left), batches=counted)
                self._found[module] = watching, ledger
                return

    def facts(self) -> Iterator[tuple[Any, ObjectLedger]]:
        """Yield what was found, each with what watches the loop of that class."""
        yield from self._found.values()


def _norms(model: nn.Module) -> dict[str, _BatchNorm]:
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, _BatchNorm)
        and module.running_mean is not None
        and module.num_batches_tracked is not None
    }


def _is_untouched(norm: _BatchNorm) -> bool:
    """Whether the statistics are those that a layer is made with."""
    mean, variance = norm.running_mean, norm.running_var
    return mean is not None and variance is not None and not bool(mean.any()) and bool((variance == 1).all())


def _has_moved(norm: _BatchNorm) -> bool:
    return int(norm.num_batches_tracked) >= MIN_BATCHES and not _is_untouched(norm)


def _samples(model: nn.Module) -> tuple[Tensor, ...]:
    """Copy some numbers of the first weight and of the last."""
    weights = [weight.detach() for weight in model.parameters() if weight.ndim > 1 and not weight.is_meta]
    return tuple(weight.flatten()[:SAMPLE].float().cpu().clone() for weight in [*weights[:1], *weights[-1:]])


def _fit(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
    return [part.shape for part in one] == [part.shape for part in other]


def _is_closer(one: tuple[Tensor, ...], now: tuple[Tensor, ...], starts: list[tuple[Tensor, ...]]) -> bool:
    """Whether weights follow those of the trained model: they are closer to them than the start of a training."""
    alike = [start for start in starts if _fit(start, now)]
    return _fit(one, now) and bool(alike) and all(_distance(one, now) < _distance(start, now) for start in alike)


def _distance(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> float:
    return sum(float((a - b).square().sum()) for a, b in zip(one, other, strict=True))
