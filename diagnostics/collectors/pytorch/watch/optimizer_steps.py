"""Counts the steps of optimizers, measures gradients and updates, and holds the records until they are read."""

from __future__ import annotations

import functools
import math
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.internal import without_collection
from diagnostics.collectors.pytorch.local_tensors import why_unreadable
from diagnostics.collectors.pytorch.watch.record.calls.order import CallOrder
from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass
from diagnostics.collectors.pytorch.watch.record.norms import Layers, taken
from diagnostics.collectors.pytorch.watch.record.step_log import (
    SKIPPED,
    Gradient,
    NonFiniteStep,
    StepLog,
    StepRecord,
    loss_number,
)
from diagnostics.collectors.pytorch.watch.record.update_size import UpdateMeasure
from diagnostics.collectors.pytorch.watch.replay.replay_buffer import ReplayBuffer
from diagnostics.collectors.shared.history import is_sampled_step
from diagnostics.errors import what

from .training_probe import TrainingProbe, WatchedModel

Held = list[tuple[int, nn.Parameter]]

# With more parameters than MANY, on a CPU, the gradients of each SELDOMth step are measured: those of all would
# take an eighth of the time. One that is not finite is found by the next loss, and its step by replay.
MANY = 1000
SELDOM = 4
EVALUATIONS = 4096  # evaluation losses kept


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


class PendingSteps:
    """The steps of one loop that are not read yet.

    Reading belongs to the part "readings". The training thread never waits for another: what it cannot read now it
    reads some steps later.

    Args:
        every: steps to read at once.
        log: takes what was read.
        replay: locates a NaN.
        skipped: knows which steps a loss scaler skips.
        watched: the model, whose probes are read along.
        unhooked: returns a context in which no hook of ours is on the model, so that it can be copied.

    Attributes:
        next: the step that is being recorded.
        open: the latest complete step, which may still get its loss; None if it is read.
        lock: held while anything is read.
        closed: whether the training is over.
        on_read: called after each read from the device.
    """

    def __init__(
        self,
        every: int,
        log: StepLog,
        replay: ReplayBuffer,
        skipped: SkippedSteps,
        watched: WatchedModel,
        unhooked: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._every, self._device, self._log = every, watched.device, log
        self._replay, self._skipped, self._probes = replay, skipped, watched.probes
        self._safely, self._faults, self._unhooked = watched.guard.run, watched.guard.faults, unhooked
        self.next = StepRecord()
        self.open: StepRecord | None = None
        self.complete: list[StepRecord] = []
        self._thread = threading.current_thread()  # the one that trains
        self.lock = threading.RLock()
        self.closed = False
        self._failure: NonFiniteStep | None = None  # that another thread has read of
        self.on_read: Callable[[], None] | None = None

    def trains_here(self) -> None:
        """Take this thread for the one that trains."""
        self._thread = threading.current_thread()

    def is_own(self) -> bool:
        """Whether this is the training thread, or that thread has ended."""
        return self.closed or self._thread is threading.current_thread() or not self._thread.is_alive()

    def begin(self, step: int, rates: list[float | Tensor]) -> None:
        """End the recording of a step whose gradients are there; read if there are enough.

        Args:
            step: its number.
            rates: its learning rates.
        """
        if len(self.complete) >= self._every:
            self.read(step)
            if "readings" in self._faults:
                self.complete.clear()
        row, self.next = self.next, StepRecord()
        row.step, row.rates = step, rates
        self.complete.append(row)
        self.open = row

    def add_loss(self, number: float | Tensor) -> None:
        """Add a loss to the step that it belongs to."""
        row = self.open if self.open is not None and not self.next.passes else self.next
        row.losses.append(number)
        if isinstance(number, float) and not math.isfinite(number):
            self._replay.noticed()

    def read(self, steps: int) -> None:
        """Read everything pending from the device, except the step that the training thread is in.

        Args:
            steps: that were made.
        """
        own = self.is_own()
        if self.lock.acquire(blocking=not own):
            try:
                self._safely("readings", self._read if own else self._read_beside, steps)
            finally:
                self.lock.release()

    def look_at_unfinished(self, steps: int, *, losses: bool = True) -> None:
        """Look for a NaN where no optimizer steps: a loss scaler skips every step after the first NaN.

        Args:
            steps: that were made.
            losses: whether to look at the losses of the step that is being recorded.
        """
        self._safely("readings", self._look_at_unfinished, steps, losses)

    def _look_at_unfinished(self, steps: int, losses: bool) -> None:
        failure = self._log.unfinished(self.next, steps, self._every) if losses else None
        failure = failure or self._skipped.failure(self.next.kept)
        if failure is not None and self._replay.origin is None:
            self._replay.copy_now()  # no step has changed them since
            self._find(failure, steps)

    def _read(self, steps: int) -> None:
        rows = taken(self.complete)
        self.open = self.open if self.closed else None
        failure = self._log.read(rows, self._device) if rows else None
        failure, self._failure = self._failure or failure, None
        self._probes.tell(TrainingProbe.on_read, steps)
        if failure is not None and self._replay.origin is None:
            if failure.left_out:
                self._replay.copy_now()  # none of these steps has changed them
            self._find(failure, steps)
        elif self.closed:
            self._replay.look_at_weights(steps - 1, self._log)
        if rows:
            self._replay.drop(rows[-1].step)
        if rows and self.on_read is not None:
            self.on_read()

    def _read_beside(self, steps: int) -> None:
        """Read the completed steps while another thread trains. That thread handles a NaN."""
        rows = self.complete[:-1]
        del self.complete[: len(rows)]
        if rows:
            self._failure = self._log.read(rows, self._device) or self._failure
        self._probes.tell(TrainingProbe.on_read, steps)

    def _find(self, failure: NonFiniteStep, steps: int) -> None:
        with self._unhooked():
            self._replay.find(failure, steps - 1, self._log, "weights" not in self._faults)


class SkippedSteps:
    """Records the starts of backward passes; checks their gradients once `SKIPPED` steps in a row were skipped.

    The only sign of a skipped step is that gradients are None when the next pass begins. Where they are set to
    zero instead, skipped steps are not detected, since reading them would wait for the device.

    Args:
        layers: of the model.
        safely: `FaultGuard.run`; the work belongs to the part "backward passes".
    """

    def __init__(self, layers: Layers, safely: Callable[..., None]) -> None:
        self._layers, self._safely = layers, safely
        self._step, self.count = -1, 0
        self._bad: Tensor | bool = True  # whether in all steps that were checked
        self._latest: Gradient | None = None

    def begins(self, step: int, held: list[Any]) -> None:
        """Record a backward pass, from within it.

        Args:
            step: number of steps that the optimizers have made.
            held: their parameters, with their numbers.
        """
        if step != self._step:
            self._step, self.count, self._bad, self._latest = step, 0, True, None
        if any(parameter.grad is not None for _, parameter in held):
            return  # one of the passes of an accumulation
        self.count += 1
        if self.count > SKIPPED:
            ends = functools.partial(self._safely, "backward passes", self._ends, held)
            torch.autograd.Variable._execution_engine.queue_callback(ends)

    def failure(self, kept: CapturedPass | None) -> NonFiniteStep | None:
        """Return the skipped step, with the batch size of `kept`; None if there is none."""
        if self._latest is None or not bool(self._bad):
            return None
        bad = ~torch.as_tensor(self._latest.norms).isfinite()
        which = tuple(number for number, one in zip(self._latest.which, bad.tolist(), strict=True) if one)
        size = 0 if kept is None else kept.size
        return NonFiniteStep(self._step, None, False, which, 0, size, None, self.count)

    def _ends(self, held: list[Any]) -> None:
        gradients, which = self._layers.gradients(held)
        if gradients:
            norms = self._layers.norms(gradients)
            self._latest = Gradient(norms, which)
            self._bad = ~norms.sum().isfinite() & self._bad


class PassedLosses:
    """The losses of one loop.

    Args:
        pending: takes those of training.
        every: calls without a step, after which they are looked at.
        optimizer_steps: whether there is an optimizer to step.
        uncovered: gets the reason where a loss is not a number.

    Attributes:
        evaluations: of each evaluation, the latest step and the loss.
        unstepped: times a loss was handed over after forward passes while no optimizer had stepped since the last.
    """

    def __init__(
        self, pending: PendingSteps, every: int, optimizer_steps: bool, uncovered: dict[str, str]
    ) -> None:
        self._pending, self._every, self._optimizer_steps = pending, every, optimizer_steps
        self._uncovered = uncovered
        self.evaluations: deque[tuple[int, float]] = deque(maxlen=EVALUATIONS)
        self.unstepped = 0
        self._called_at = 0

    def take(self, loss: Any, steps: int) -> None:
        """Take a training loss after so many steps; None if the loop has none."""
        passes = self._pending.next.passes
        why_not = why_unreadable([loss]) if isinstance(loss, Tensor) else ""
        number = None if loss is None or why_not else loss_number(loss)
        if number is not None:
            self._pending.add_loss(number)
        elif loss is not None:
            self._uncovered["loss"] = why_not or f"step() was given {_given(loss)}, which is not a number"
        if self._optimizer_steps and self._called_at == steps and passes:
            self.unstepped += 1
            if self.unstepped % self._every == 0:
                self._pending.look_at_unfinished(steps)
        self._called_at = steps

    def take_evaluation(self, loss: Any, steps: int) -> None:
        """Take an evaluation loss after so many steps."""
        number = None if isinstance(loss, Tensor) and why_unreadable([loss]) else loss_number(loss)
        if number is None:
            self._uncovered["evaluation"] = f"evaluated() was given {_given(loss)}, which is not a number"
        else:
            self.evaluations.append((max(0, steps - 1), float(number)))


def _given(loss: Any) -> str:
    if isinstance(loss, Tensor):
        return f"a tensor of {str(loss.dtype).removeprefix('torch.')} {tuple(loss.shape)}"
    return f"{what(loss)} too large for a float" if isinstance(loss, int) else what(loss)
