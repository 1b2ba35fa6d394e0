"""Measures how long the parts of a script's training steps take, whatever loop they are in."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.loss import _Loss
from torch.utils.data import DataLoader, IterableDataset

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.shared.script_line import defined_at
from diagnostics.collectors.shared.step_clock import WARM_UP, StepClock
from diagnostics.facts.step_times import BatchSource, StepTimes
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import subscribe

WRAPPERS = 8  # datasets within datasets, as `Subset` holds one


class StepTimer:
    """Follows the steps of all loops of a script: its own, a Trainer's and Lightning's.

    A pass without a backward pass before the next batch is an evaluation, and is left out.

    Args:
        guard: runs the work at each event.
    """

    def __init__(self, guard: FaultGuard) -> None:
        self._clock = StepClock()
        self._thread = threading.get_ident()
        self._sources: IdentityMap[Any, BatchSource] = IdentityMap()  # by iterator
        self._learning: IdentityMap[nn.Module, None] = IdentityMap()
        self._drawn: BatchSource | None = None  # of the latest batch; None if there was none since the last step
        self._forward = self._backward = False  # whether there was one since the latest batch
        self._steps = False  # whether an optimizer steps now; its closure may hold all passes
        self._on_return = partial(guard.attempt, self._returned)
        self.close = subscribe(
            guard.attempt,
            (taps.loader_iter.before, self._iterates),
            (taps.loader_iter.after, self._iterated),
            (taps.loader_next.before, self._waits),
            (taps.loader_next.after, self._drew),
            (taps.loader_next.exhausted, self._exhausted),
            (taps.module_call.before, self._called),
            (taps.backward.before, self._before_backward),
            (taps.backward.after, self._after_backward),
            (taps.optimizer_step.before, self._before_step),
            (taps.optimizer_step.after, self._after_step),
        )

    def times(self) -> StepTimes | None:
        """Return the times so far; None of a run that is too short."""
        return self._clock.times()

    @property
    def _elsewhere(self) -> bool:
        """Whether this is a thread that does not train."""
        return threading.get_ident() != self._thread

    def _iterates(self, _loader: Any) -> None:
        if not self._elsewhere:
            self._next_batch()

    def _iterated(self, iterator: Any, loader: DataLoader[Any]) -> None:
        self._sources[iterator] = _source(loader)
        if not self._elsewhere:
            self._clock.begin("rest")

    def _waits(self, _iterator: Any) -> None:
        if not self._elsewhere:
            self._next_batch()

    def _next_batch(self) -> None:
        if self._backward:  # of several batches for one step
            self._clock.keep()
        elif self._forward:
            self._clock.drop()
        self._forward = self._backward = False
        self._clock.begin("loader")

    def _drew(self, _batch: Any, iterator: Any) -> None:
        if not self._elsewhere:
            self._drawn = self._sources.get(iterator)
            self._clock.drew()
            self._clock.begin("transfer")

    def _exhausted(self, _iterator: Any) -> None:
        if not self._elsewhere:
            self._clock.drop()  # what follows belongs to the end of an epoch

    def _called(self, call: taps.ModuleCall) -> None:
        if self._elsewhere:
            return
        module, learns = call.module, torch.is_grad_enabled()
        if self._drawn is None and not learns and not module.training and module in self._learning:
            self._clock.drop()  # an evaluation that takes its batches from no loader
            return
        if learns and module.training and module not in self._learning:
            self._learning[module] = None
        if self._clock.steps < WARM_UP:
            first = next(module.parameters(), None)
            self._clock.asynchronous |= first is not None and first.device.type not in ("cpu", "meta")
        self._forward = True
        self._clock.begin("loss" if isinstance(module, _Loss) else "forward")
        call.on_return.append(self._on_return)

    def _returned(self, _result: Any) -> None:
        self._clock.begin("loss")  # whatever is computed until the backward pass

    def _before_backward(self, *_: Any, **__: Any) -> None:
        if not self._elsewhere:
            self._backward = True
            self._clock.begin("backward")

    def _after_backward(self, *_: Any, **__: Any) -> None:
        if not self._elsewhere:
            self._clock.begin("optimizer" if self._steps else "rest")

    def _before_step(self, *_: Any) -> None:
        if not self._elsewhere:
            self._steps = True
            self._clock.begin("optimizer")

    def _after_step(self, *_: Any) -> None:
        self._thread, self._steps = threading.get_ident(), False
        if self._backward:
            self._clock.step()
            self._clock.source = self._drawn or self._clock.source
        else:
            self._clock.drop()
        self._drawn, self._forward, self._backward = None, False, False


def _source(loader: DataLoader[Any]) -> BatchSource:
    dataset = loader.dataset
    for _ in range(WRAPPERS):
        name = "__iter__" if isinstance(dataset, IterableDataset) else "__getitem__"
        where = defined_at(getattr(type(dataset), name, None))
        if where is not None or not hasattr(dataset, "dataset"):
            break
        dataset = dataset.dataset
    return BatchSource(
        "DataLoader", workers=loader.num_workers, persistent=loader.persistent_workers, pinned=loader.pin_memory,
        items=where,
    )  # fmt: skip
