"""Watches a PyTorch training loop by hooks on the model and its optimizers, read every few steps.

Cost of a step: one fused norm over all gradients, on an accelerator a copy of the weights, a copy of up to 1,024
numbers of each input, and a few small operations; all of it stays on the device. Memory: on an accelerator the
weights twice more, if they take at most `weight_snapshot.LIMIT` bytes, and references to the inputs of the last
steps; see `replay_buffer`.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.local_tensors import is_sharded, local, unusual, why_unreadable
from diagnostics.collectors.pytorch.model import device_of, uncompiled
from diagnostics.collectors.pytorch.optimizer import replaced_since, unwrapped
from diagnostics.collectors.pytorch.watch.metrics.equal_units import EqualUnits
from diagnostics.collectors.pytorch.watch.metrics.input_samples import InputSamples
from diagnostics.collectors.pytorch.watch.metrics.live_graphs import LiveGraphs
from diagnostics.collectors.pytorch.watch.metrics.no_grad_passes import NoGradPasses
from diagnostics.collectors.pytorch.watch.metrics.predictions import Predictions, labels_in
from diagnostics.collectors.pytorch.watch.metrics.rounded_updates import RoundedUpdates
from diagnostics.collectors.pytorch.watch.metrics.samplers import Samplers
from diagnostics.collectors.pytorch.watch.metrics.targets import Targets
from diagnostics.collectors.pytorch.watch.metrics.train_mode import TrainModes
from diagnostics.collectors.pytorch.watch.record.calls.order import CallOrder
from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass, keep, tensors
from diagnostics.collectors.pytorch.watch.record.model_hooks import hook_around
from diagnostics.collectors.pytorch.watch.record.norms import Layers, taken
from diagnostics.collectors.pytorch.watch.record.step_log import (
    Gradient,
    NonFiniteStep,
    StepLog,
    StepRecord,
    loss_number,
)
from diagnostics.collectors.pytorch.watch.record.update_size import UpdateMeasure
from diagnostics.collectors.pytorch.watch.replay.replay_buffer import ReplayBuffer
from diagnostics.collectors.pytorch.watch.replay.trace import Trace
from diagnostics.collectors.shared.sampling import is_sampled_step
from diagnostics.errors import what
from diagnostics.facts.layers import RangeFacts
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.pipeline import OptimizerFacts
from diagnostics.facts.training import PredictionFacts, TraceFacts, TrainingHistory
from diagnostics.failed_batch import FailedBatch

from .skipped_steps import SkippedSteps

OUTPUTS = 4  # of the model's output tensors, those with a hook for the start of a backward pass
FIRST = 8  # steps in which the start of the backward pass is always recorded; later only in sampled ones
EVALUATIONS = 4096  # evaluation losses kept
POOR = 0.7  # share of right answers in evaluations, below which they may be at chance


class TorchWatcher:
    """Watches one model and its optimizers; see `diagnostics.watch` for the arguments.

    A part that fails is switched off and reported in `faults`; nothing is raised into the loop.

    Attributes:
        steps: optimizer steps seen so far, of the optimizer that stepped first.
        faults: by part, the fault of this library; empty where the script had broken what the part needs.
        uncovered: by part, why it could not be watched.
        on_read: called after each read from the device.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizers: list[Any],
        every: int,
        deferred: bool | None = None,
        trace_steps: Collection[int] = (),
        faults: dict[str, str] | None = None,
    ) -> None:
        self._model = model
        self._inner = uncompiled(model)
        self._optimizers = [unwrapped(optimizer) for optimizer in optimizers]
        self._every = every
        self._look = self._sampled(0)  # whether this step is sampled
        self._device = device_of(self._inner)
        self.steps = 0
        self.on_read: Callable[[], None] | None = None
        self.uncovered: dict[str, str] = {}
        guard = FaultGuard(faults, self.uncovered)
        self.faults = guard.faults
        self._safely, self._hook = guard.run, guard.hook
        self.compiled = self._inner is not model
        self._layers = Layers(self._inner)
        guard.unusual = unusual(map(local, self._layers.parameters.values()))
        self._held = [self._layers.held_by(optimizer) for optimizer in self._optimizers]
        # Where no optimizer holds a parameter of the model, all are measured, to see that nothing changes.
        self._moved = self._held if any(self._held) else [self._layers.everything() for _ in self._held]
        self._step_log = StepLog(self._layers, max(1, sum(len(o.param_groups) for o in self._optimizers)))
        self._samples = Samplers(self._inner, self._layers, self._safely)
        self._trace = Trace(self._inner, trace_steps, lambda fault: guard.switch_off("trace", fault))
        if trace_steps and self.compiled:
            self.uncovered["trace"] = "torch.compile fuses the modules: trace the model without it"
        self._predictions = Predictions()
        self._targets = Targets()
        self._inputs = InputSamples()
        self._modes = TrainModes(self._inner)
        self._graphs = LiveGraphs()
        self._equal_units = EqualUnits()
        self._skipped = SkippedSteps(self._layers, self._safely)
        self._known = {id(parameter) for parameter in self._inner.parameters()}
        self._rounding = RoundedUpdates(self._layers, self._optimizers, self._held)
        calls_fault = functools.partial(guard.switch_off, "calls")
        groups = [optimizer.param_groups for optimizer in self._optimizers]
        self._calls = CallOrder(self._layers.parameters, self._held, groups, calls_fault)
        self._labels: Any = None
        self._replaced: OptimizerFacts | None = None
        self._leader: int | None = None
        self._rows: list[StepRecord] = []
        self._next = StepRecord()
        self._open: StepRecord | None = None  # the latest step, which may still get its loss
        self._deferred = self._device.type != "cpu" if deferred is None else deferred
        self._updates = [UpdateMeasure(self._layers, moved) for moved in self._moved]
        shard = "of the shards of this process" if any(map(is_sharded, self._layers.parameters.values())) else ""
        sampled = next((u.remark for u in self._updates if u.remark), "")
        self.remarks = {"gradients": shard, "updates": "; ".join(filter(None, (sampled, shard)))}
        self._no_grad = NoGradPasses(self._inner)
        self._unstepped = self._called_at = 0
        self.forwards = 0
        self._evaluations: deque[tuple[int, float]] = deque(maxlen=EVALUATIONS)
        self._handles: list[Any] = []
        self._closed = self._unreadable = False
        self._thread = threading.current_thread()  # the one that trains
        self._reading = threading.RLock()
        self._failure: NonFiniteStep | None = None  # that another thread has read of
        always = self._deferred or not self._optimizers
        self._replay_buffer = ReplayBuffer(self._model, self._layers, self._device, self._deferred, always)
        if self._replay_buffer.why_not:
            self.uncovered["weights"] = self._replay_buffer.why_not
        self._attach()

    @property
    def origin(self) -> OriginFacts | None:
        """Where the first NaN or inf came from; None while there is none."""
        return self._replay_buffer.origin

    def close(self) -> None:
        """Remove all hooks and read what is pending; the records stay."""
        if self._closed:
            return
        self._closed = True
        self._predictions.training_goes_on()
        self._detach_from_model()
        self._calls.close()
        while self._handles:
            self._handles.pop().remove()
        self._samples.close()
        self._trace.abandon()
        self._safely("readings", self._look_at_unfinished, False)
        self.read()

    def release(self) -> None:
        """Drop the model, the optimizers and all records; nothing can be read afterwards.

        The parts refer to each other, and would otherwise stay until the next garbage collection.
        """
        self.close()
        vars(self).clear()

    def step(self, loss: Any, labels: Any = None) -> None:
        """Record loss and labels of the step; count the step itself if there is no optimizer."""
        if self._closed:
            return
        self._thread = threading.current_thread()
        if not self._optimizers:
            self._safely("gradients", self._step_without_optimizer)
        self._safely("loss", self._take, loss, labels)

    def _take(self, loss: Any, labels: Any) -> None:
        pending = self._next.passes
        of_step = self.steps if pending else self.steps - 1
        if labels is not None and self._sampled(of_step):
            self._safely("predictions", self._predictions.labels, of_step, labels)
        why_not = why_unreadable([loss]) if isinstance(loss, Tensor) else ""
        number = None if loss is None or why_not else loss_number(loss)
        if number is not None:
            row = self._open if self._open is not None and not pending else self._next
            row.losses.append(number)
            if isinstance(number, float) and not math.isfinite(number):
                self._replay_buffer.noticed()
        elif loss is not None:
            self.uncovered["loss"] = why_not or f"step() was given {_given(loss)}, which is not a number"
        if self._optimizers and self._called_at == self.steps and pending:
            self._unstepped += 1
            if self._unstepped % self._every == 0:
                self._safely("readings", self._look_at_unfinished)
        self._called_at = self.steps

    def evaluated(self, loss: float) -> None:
        """Record an evaluation loss."""
        self._safely("evaluation", self._take_evaluation, loss)

    def _take_evaluation(self, loss: Any) -> None:
        number = None if isinstance(loss, Tensor) and why_unreadable([loss]) else loss_number(loss)
        if number is None:
            self.uncovered["evaluation"] = f"evaluated() was given {_given(loss)}, which is not a number"
        else:
            self._evaluations.append((max(0, self.steps - 1), float(number)))

    def read(self) -> None:
        """Read everything pending from the device, except the step that the training thread is in.

        The training thread never waits for another: what it cannot read now it reads some steps later.
        """
        own = self._is_own()
        if self._reading.acquire(blocking=not own):
            try:
                self._safely("readings", self._read if own else self._read_beside)
            finally:
                self._reading.release()

    def still(self) -> threading.RLock:
        """Return the lock to hold while facts are taken, so that the training thread reads nothing meanwhile."""
        return self._reading

    def _is_own(self) -> bool:
        """Whether this is the training thread, or that thread has ended."""
        return self._closed or self._thread is threading.current_thread() or not self._thread.is_alive()

    def history(self) -> TrainingHistory:
        """Return the run so far."""
        return self._step_log.history(
            self.steps,
            "accelerator" if self._device.type == "cuda" else "process",
            list(self._evaluations),
            self._no_grad.history(),
            self._unstepped,
        )

    def ranges(self) -> RangeFacts | None:
        """Return the ranges of the activations; None if none were measured."""
        return self._samples.ranges()

    def batch(self) -> FailedBatch | None:
        """Return the batch in which NaN or inf first appeared; None while there is none."""
        return self._replay_buffer.batch()

    def traces(self) -> tuple[TraceFacts, ...]:
        """Return the traced steps."""
        return tuple(self._trace.traces)

    def course(self) -> tuple[Any, ...]:
        """Return the other facts: predictions, inputs, modes, live graphs, units, calls."""
        self._safely("predictions", self._predictions.read, self.steps, self._is_own())
        self._safely("calls", self._calls.read)
        self._safely("rounding", self._rounding.read)
        self._safely("layers", self._look_at_layers)
        self._safely("targets", self._targets.read)
        predictions = self._predictions.facts()
        others: list[Any] = [
            predictions,
            self._inputs.facts(),
            self._modes.facts(),
            self._graphs.facts(),
            self._rounding.facts(),
            self._replaced,
        ]
        fits = predictions is not None and _is_poor(predictions)  # the reason may be wanted
        self._safely("targets", lambda: others.append(self._targets.facts(self.history().losses, fits)))
        self._safely("targets", lambda: others.append(self._targets.drawn()))
        self._safely("equal units", lambda: others.append(self._equal_units.facts()))
        seen = (*others, *self._samples.facts(), *self._calls.facts())
        return tuple(facts for facts in seen if facts is not None)

    def _look_at_layers(self) -> None:
        if self._optimizers and self.steps:
            self._replaced = replaced_since(self._optimizers, self._inner, self._known)

    # Hooks. Each runs its work through `_safely`.

    def _attach(self) -> None:
        self._attach_to_model()
        for number, optimizer in enumerate(self._optimizers):
            if isinstance(optimizer, torch.optim.LBFGS):
                name = type(optimizer).__name__
                self.uncovered["gradients"] = f"{name} runs several passes within one step, by a closure"
            before = optimizer.register_step_pre_hook(self._hook("gradients", self._before_step, number))
            after = optimizer.register_step_post_hook(self._hook("updates", self._after_step, number))
            self._handles += [before, after]

    def _attach_to_model(self) -> None:
        self._detach_from_model = hook_around(self._model, self._before_forward, self._after_forward)

    def _before_forward(self, _model: nn.Module, args: Any, kwargs: Any) -> None:
        if not _is_recorded():
            if self._trace.steps:
                self._trace.abandon()  # of a pass that failed
            self._safely("forward passes", self._forward_begins, args, kwargs)

    def _after_forward(self, _model: nn.Module, _args: Any, output: Any) -> None:
        if not _is_recorded() and not self._unreadable:
            self._samples.close()
            if self._trace.steps:
                self._safely("trace", self._trace.close, output)
            if not torch.is_grad_enabled():
                self._safely("predictions", self._predictions.evaluation, self.steps, output, self._labels)
            elif self._look or self.steps < FIRST or self._next.passes > FIRST:
                self._safely("backward passes", self._listen, output)
                if self._look:
                    self._safely("predictions", self._look_at, output)
            self._labels = None

    def _forward_begins(self, args: Any, kwargs: Any) -> None:
        why_not = why_unreadable(tensors((args, kwargs)))
        self._unreadable = bool(why_not)
        if why_not:
            if not self.forwards:
                self.uncovered["forward passes"] = why_not
            return
        if not torch.is_grad_enabled():
            self._labels = labels_in(kwargs)
            self._no_grad.add(self.steps, self._model.training, args, kwargs)
            self._safely("inputs", self._inputs.evaluation, self.steps, args, kwargs)
            return
        self._thread = threading.current_thread()
        self._predictions.training_goes_on()
        if not self.forwards:
            self.uncovered.pop("forward passes", None)
        self.forwards += 1
        self._next.passes += 1
        kept = keep(self.steps, self._model, args, kwargs, self._device)
        self._next.kept = kept
        self._replay_buffer.hold(kept)
        if self._replay_buffer.always:
            self._safely("weights", self._replay_buffer.before_pass, self.steps)
        if self._look and self._next.passes == 1:
            self._labels = labels_in(kwargs)
            self._safely("inputs", self._inputs.training, args, kwargs)
            if not self.compiled:
                self._safely("activations", self._samples.open, self.steps)
        if self.steps in self._trace.steps and self._next.passes == 1 and not self.compiled:
            self._safely("trace", self._trace.open, self.steps, (args, kwargs))

    def _look_at(self, output: Any) -> None:
        self._predictions.training(self.steps, output, self._labels)
        self._graphs.mark(self.steps, output)
        kept = self._next.kept
        if "targets" not in self.faults:
            inputs = None if kept is None or kept.changed else kept.inputs
            self._safely("targets", self._targets.training, self.steps, output, inputs)

    def _listen(self, output: Any) -> None:
        kept = weakref.ref(self._next.kept) if self._next.kept is not None else None
        heard: list[bool] = []

        def begins(_gradient: Tensor) -> None:
            if not heard:
                heard.append(True)
                self._safely("backward passes", self._backward_begins, kept and kept())

        for tensor in [t for t in tensors(output) if t.requires_grad][:OUTPUTS]:
            tensor.register_hook(begins)

    def _backward_begins(self, kept: CapturedPass | None) -> None:
        row = self._next
        row.backwards += 1
        self._skipped.begins(self.steps, [pair for held in self._held for pair in held])
        self._modes.look(self.steps)
        row.kept = kept or row.kept
        is_backward = self._calls.in_new_backward()
        if self.steps == 0 or self._leader is None or row.clean or not is_backward:
            return
        held = self._held[self._leader]
        if all(parameter.grad is None for _, parameter in held):
            row.clean = True
        elif len(row.leftovers) < OUTPUTS:
            gradients, _ = self._layers.gradients(held)
            if gradients:
                row.leftovers.append(self._layers.norms(gradients).max())

    def _before_step(self, number: int, *_: Any) -> None:
        if self._leader is None:
            self._leader = number
        if number == self._leader:
            if not self.steps:
                self._safely("equal units", self._equal_units.begin, self._layers.parameters)
            self._begin_row()
        if isinstance(self._optimizers[number], torch.optim.LBFGS):
            return
        assert self._open is not None or number != self._leader
        row = self._open or self._next
        self._measure(row, self._held[number], self._optimizers[number])
        if self._look and self._moved[number]:
            self._updates[number].begin()
            self._safely("rounding", self._rounding.look, self.steps, number)

    def _begin_row(self) -> None:
        if len(self._rows) >= self._every:
            self.read()
            if "readings" in self.faults:
                self._rows.clear()
        row, self._next = self._next, StepRecord()
        row.step = self.steps
        row.rates = [
            rate if type(rate) is float else rate.detach().clone() if isinstance(rate, Tensor) else float(rate)
            for optimizer in self._optimizers
            for rate in [group.get("lr", math.nan) for group in optimizer.param_groups]
        ][: self._step_log.groups] or [math.nan]  # groups added since have no place in the history
        self._rows.append(row)
        self._open = row

    def _measure(self, row: StepRecord, held: list[Any], optimizer: Any) -> None:
        gradients, which = self._layers.gradients(held)
        if not gradients:
            return
        if gradients[0].requires_grad:  # of a backward pass with create_graph
            gradients = [gradient.detach() for gradient in gradients]
        of_scaler = getattr(optimizer, "__dict__", {})  # where a loss scaler leaves what the optimizer is to know
        overflow = of_scaler.get("found_inf")
        measure = self._layers.norms if self._deferred else self._layers.norms_on_host
        norms: Tensor | list[float] = measure(gradients)
        if self._replay_buffer.note(norms, overflow):
            self._safely("weights", self._replay_buffer.copy_now)
        row.gradients.append(Gradient(norms, which, of_scaler.get("grad_scale"), overflow))
        if self._look:
            self._safely("activations", self._samples.gradients, self.steps, gradients, which)

    def _after_step(self, number: int, *_: Any) -> None:
        update = self._updates[number].end()
        if update is not None and self._open is not None:
            self._open.updates.append(update)
        if number == self._leader:
            self._advance()
        self._calls.stepped(number, self.steps)

    def _step_without_optimizer(self) -> None:
        self._begin_row()
        assert self._open is not None
        self._measure(self._open, self._layers.everything(), None)
        self._advance()

    def _advance(self) -> None:
        self.steps += 1
        self._look = self._sampled(self.steps)

    def _sampled(self, step: int) -> bool:
        return is_sampled_step(step, self._every)

    # Reading.

    def _read(self) -> None:
        rows = taken(self._rows)
        self._open = None if not self._closed else self._open
        failure = self._step_log.read(rows, self._device) if rows else None
        failure, self._failure = self._failure or failure, None
        self._samples.read()
        self._safely("predictions", self._predictions.read, self.steps, False)
        self._safely("targets", self._targets.read)
        if failure is not None and self.origin is None:
            if failure.left_out:
                self._replay_buffer.copy_now()  # none of these steps has changed them
            self._find(failure)
        elif self._closed:
            self._replay_buffer.look_at_weights(self.steps - 1, self._step_log)
        if rows:
            self._replay_buffer.drop(rows[-1].step)
        if rows and self.on_read is not None:
            self.on_read()

    def _read_beside(self) -> None:
        """Read the completed steps while another thread trains. That thread handles a NaN."""
        rows = self._rows[:-1]
        del self._rows[: len(rows)]
        if rows:
            self._failure = self._step_log.read(rows, self._device) or self._failure
        self._samples.read()
        self._predictions.read(self.steps, False)

    def _look_at_unfinished(self, losses: bool = True) -> None:
        """Look for a NaN where no optimizer steps: a loss scaler skips every step after the first NaN."""
        failure = self._step_log.unfinished(self._next, self.steps, self._every) if losses else None
        failure = failure or self._skipped.failure(self._next.kept)
        if failure is not None and self.origin is None:
            self._replay_buffer.copy_now()  # no step has changed them since
            self._find(failure)

    def _find(self, failure: NonFiniteStep) -> None:
        self._detach_from_model()  # or the copy might call it
        self._samples.close()
        self._trace.abandon()
        try:
            self._replay_buffer.find(failure, self.steps - 1, self._step_log, "weights" not in self.faults)
        finally:
            if not self._closed:
                self._attach_to_model()


def _given(loss: Any) -> str:
    if isinstance(loss, Tensor):
        return f"a tensor of {str(loss.dtype).removeprefix('torch.')} {tuple(loss.shape)}"
    return f"{what(loss)} too large for a float" if isinstance(loss, int) else what(loss)


def _is_recorded() -> bool:
    """Whether torch.compile, export or jit.trace is recording this pass, hooks included."""
    return bool(torch.compiler.is_compiling() or torch.jit.is_tracing())


def _is_poor(predictions: PredictionFacts) -> bool:
    """Whether the evaluations may be at chance."""
    right, labels = predictions.evaluation_right, int(predictions.evaluation_labels.sum())
    return right is not None and bool(labels) and int(right.sum()) < POOR * labels
