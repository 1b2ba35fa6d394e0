"""Counts the steps of optimizers; measures the gradients before each, and the updates of the sampled ones."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.collection import without_collection
from diagnostics.collectors.pytorch.watch.record.calls.order import CallOrder
from diagnostics.collectors.pytorch.watch.record.step_log import Gradient, StepRecord
from diagnostics.collectors.pytorch.watch.record.update_size import UpdateMeasure
from diagnostics.collectors.pytorch.watch.replay.replay_buffer import ReplayBuffer
from diagnostics.collectors.shared.history import is_sampled_step

from .pending_steps import PendingSteps
from .training_probe import TrainingProbe, WatchedModel

Held = list[tuple[int, nn.Parameter]]

# With more parameters than MANY, on a CPU, the gradients of each SELDOMth step are measured: those of all would
# take an eighth of the time. One that is not finite is found by the next loss, and its step by replay.
MANY = 1000
SELDOM = 4


class OptimizerSteps:
    """The steps of one loop.

    Args:
        watched: the model; without an optimizer, each call of `step_without_optimizer` is a step.
        every: each so many steps are sampled.
        deferred: whether norms stay on the device.
        groups: parameter groups whose learning rates are recorded.
        pending: takes the records.
        replay: is told of gradients that are not finite.
        calls: is told of each step.

    Attributes:
        count: steps so far, of the optimizer that stepped first.
        is_sampled: whether the step that is being made is sampled.
        remark: on how the updates are measured.
    """

    def __init__(
        self,
        watched: WatchedModel,
        *,
        every: int,
        deferred: bool,
        groups: int,
        pending: PendingSteps,
        replay: ReplayBuffer,
        calls: CallOrder,
    ) -> None:
        self._optimizers, self._layers, self._held = watched.optimizers, watched.layers, watched.held
        self._every, self._deferred, self._groups = every, deferred, groups
        self._guard, self._probes, self._watched = watched.guard, watched.probes, watched
        self._pending, self._replay, self._calls = pending, replay, calls
        # Where no optimizer holds a parameter of the model, all are measured, to see that nothing changes.
        self._moved = self._held if any(self._held) else [self._layers.everything() for _ in self._held]
        self._updates = [UpdateMeasure(self._layers, moved) for moved in self._moved]
        self.remark = next((update.remark for update in self._updates if update.remark), "")
        self._leader: int | None = None
        self.count = 0
        self.is_sampled = self.samples(0)

    def samples(self, step: int) -> bool:
        """Whether a step is sampled."""
        return is_sampled_step(step, self._every)

    def attach(self) -> list[Any]:
        """Hook the optimizers, and return the handles."""
        handles: list[Any] = []
        for number, optimizer in enumerate(self._optimizers):
            before = optimizer.register_step_pre_hook(self._guard.hook("gradients", self._before_step, number))
            after = optimizer.register_step_post_hook(self._guard.hook("updates", self._after_step, number))
            handles += [before, after]
        return handles

    def close(self) -> None:
        """Free the copies of weights: the training is over."""
        for update in self._updates:
            update.drop()

    def held_by_leader(self) -> Held | None:
        """Return what the optimizer holds whose steps count; None before its first step is over."""
        return None if self._leader is None or not self.count else self._held[self._leader]

    def step_without_optimizer(self) -> None:
        """Measure and count a step of a loop that has no optimizer."""
        self._begin()
        assert self._pending.open is not None
        self._measure(self._pending.open, self._layers.everything(), None)
        self._advance()

    def _before_step(self, number: int, *_: Any) -> None:
        if self._leader is None:
            self._leader = number
        if number == self._leader:
            if not self.count:
                self._probes.tell(TrainingProbe.on_training_begin)
            self._begin()
        if isinstance(self._optimizers[number], torch.optim.LBFGS):
            return
        assert self._pending.open is not None or number != self._leader
        row = self._pending.open or self._pending.next
        self._measure(row, self._held[number], self._optimizers[number])
        if self.is_sampled and self._moved[number]:
            self._updates[number].begin()
            self._probes.tell(TrainingProbe.on_step, self.count, number)

    def _begin(self) -> None:
        rates = [
            rate if type(rate) is float else rate.detach().clone() if isinstance(rate, Tensor) else float(rate)
            for optimizer in self._optimizers
            for rate in [group.get("lr", math.nan) for group in optimizer.param_groups]
        ][: self._groups]  # groups added since have no place in the history
        self._pending.begin(self.count, rates or [math.nan])

    def _measure(self, row: StepRecord, held: Held, optimizer: Any) -> None:
        of_scaler = getattr(optimizer, "__dict__", {})  # where a loss scaler leaves what the optimizer is to know
        overflow = of_scaler.get("found_inf")
        if overflow is None and not self._measures_gradients(len(held)):
            return
        gradients, which = self._layers.gradients(held)
        if not gradients:
            return
        if gradients[0].requires_grad:  # of a backward pass with create_graph
            gradients = [gradient.detach() for gradient in gradients]
        measure = self._layers.norms if self._deferred else self._layers.norms_on_host
        with without_collection():
            norms: Tensor | list[float] = measure(gradients)
        if self._replay.note(norms, overflow):
            self._guard.run("weights", self._replay.copy_now)
        row.gradients.append(Gradient(norms, which, of_scaler.get("grad_scale"), overflow))
        if self.is_sampled:
            self._probes.tell(TrainingProbe.on_gradients, self.count, gradients, which)
        if self._watched.on_broken is not None and not _are_finite(norms) and (overflow is None or not overflow):
            self._watched.on_broken()

    def _measures_gradients(self, parameters: int) -> bool:
        few = parameters <= MANY or self._watched.on_broken is not None
        return few or self._deferred or self.is_sampled or not self.count % SELDOM

    def _after_step(self, number: int, *_: Any) -> None:
        update = self._updates[number].end()
        if update is not None and self._pending.open is not None:
            self._pending.open.updates.append(update)
        if number == self._leader:
            self._advance()
        self._calls.stepped(number, self.count)

    def _advance(self) -> None:
        self.count += 1
        self.is_sampled = self.samples(self.count)


def _are_finite(norms: Tensor | list[float]) -> bool:
    return math.isfinite(float(norms.sum()) if isinstance(norms, Tensor) else sum(norms))
