"""Watches a PyTorch training loop by hooks on the model and its optimizers, read every few steps.

Cost of a step: one fused norm over all gradients, on an accelerator a copy of the weights, a copy of up to 1,024
numbers of each input, and a few small operations; all of it stays on the device. Memory: on an accelerator the
weights twice more, if they take at most `weight_snapshot.LIMIT` bytes, and references to the inputs of the last
steps; see `replay_buffer`.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import weakref
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.recording import is_recorded
from diagnostics.collectors.probe import Probes
from diagnostics.collectors.pytorch.local_tensors import is_sharded, local, unusual, why_unreadable
from diagnostics.collectors.pytorch.model import device_of, uncompiled
from diagnostics.collectors.pytorch.optimizer import unwrapped
from diagnostics.collectors.pytorch.watch import metrics
from diagnostics.collectors.pytorch.watch.metrics.activation_ranges import ActivationRanges
from diagnostics.collectors.pytorch.watch.metrics.modes import NoGradPasses
from diagnostics.collectors.pytorch.watch.metrics.outputs.evaluation_losses import EvaluationLosses
from diagnostics.collectors.pytorch.watch.optimizer_steps import PassedLosses, PendingSteps, SkippedSteps
from diagnostics.collectors.pytorch.watch.record.calls.order import CallOrder
from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass, keep, tensors
from diagnostics.collectors.pytorch.watch.record.model_hooks import ModuleHooks, hook_around
from diagnostics.collectors.pytorch.watch.record.norms import Layers, beside_outputs
from diagnostics.collectors.pytorch.watch.record.step_log import StepLog, loss_number
from diagnostics.collectors.pytorch.watch.replay.module_calls import Trace
from diagnostics.collectors.pytorch.watch.replay.replay_buffer import ReplayBuffer
from diagnostics.collectors.pytorch.watch.replay.weight_snapshot import LIMIT
from diagnostics.errors import TrainingStopped
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.layers import RangeFacts
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.training import EARLY, TraceFacts, TrainingHistory
from diagnostics.failed_batch import FailedBatch

from .optimizer_steps import OptimizerSteps
from .training_probe import TrainingProbe

JUDGED = 8  # steps that are not finite and are judged at once; the rules may have no objection
OUTPUTS = 4  # of the model's output tensors, those with a hook for the start of a backward pass
FIRST = 8  # steps in which the start of the backward pass is always recorded; later only in sampled ones


class TorchWatcher:
    """Watches one model and its optimizers; see `diagnostics.watch` for the arguments, and `WatchedModel`.

    A part that fails is switched off and reported in `faults`; nothing is raised into the loop.

    Attributes:
        faults: by part, the fault of this library; empty where the script had broken what the part needs.
        uncovered: by part, why it could not be watched.
        trained_before: whether the same process has trained the model already, in another loop.
        on_broken: called once something of a step is not finite, before an optimizer steps on it if it is a
            gradient; None for nothing. It may end the training by TrainingStopped.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizers: list[Any],
        every: int,
        deferred: bool | None = None,
        trace_steps: Collection[int] = (),
        faults: dict[str, str] | None = None,
        shows_batch: bool = True,
    ) -> None:
        self._called = model
        self.model = uncompiled(model)
        self.optimizers = [unwrapped(optimizer) for optimizer in optimizers]
        self._unwrapped = [optimizer for optimizer in optimizers if unwrapped(optimizer) is optimizer]
        self.device = device_of(self.model)
        self.uncovered: dict[str, str] = {}
        guard = FaultGuard(faults, self.uncovered)
        self.faults = guard.faults
        self._safely = guard.run
        self._end: Callable[[], object] | None = None
        self._judged, self.trained_before = 0, False
        self._buffers: dict[str, Tensor] = {}  # before the step, while something may end the training
        self.layers = Layers(self.model)
        guard.unusual = unusual(map(local, self.layers.parameters.values()))
        self.held = [self.layers.held_by(optimizer) for optimizer in self.optimizers]
        self._step_log = StepLog(self.layers, max(1, sum(len(o.param_groups) for o in self.optimizers)))
        self.compiled = self.model is not model
        self.hooks, self.guard, self.shows_batch = ModuleHooks(self.model), guard, shows_batch
        self.probes = Probes(metrics, TrainingProbe, self, guard.run)
        self._trace = Trace(self.model, trace_steps, lambda fault: guard.switch_off("trace", fault))
        if trace_steps and self.compiled:
            self.uncovered["trace"] = "torch.compile fuses the modules: trace the model without it"
        self._skipped = SkippedSteps(self.layers, self._safely)
        calls_fault = functools.partial(guard.switch_off, "calls")
        groups = [optimizer.param_groups for optimizer in self.optimizers]
        self._calls = CallOrder(self.layers.parameters, self.held, groups, calls_fault, self._latest_pass)
        self._deferred = self.device.type != "cpu" if deferred is None else deferred
        self.forwards = 0
        self._evaluated = False  # since the latest pass with gradients
        self._beside: frozenset[int] | None = None  # parameters that the outputs do not come from
        self._latest: tuple[CapturedPass | None, Any] = None, None  # training pass, and the labels handed over
        self._handles: list[Any] = []
        self._closed = self._unreadable = self._resting = self._trained_again = False
        always = self._deferred or not self.optimizers
        self._replay_buffer = ReplayBuffer(self._called, self.layers, self.device, self._deferred, always)
        if self._replay_buffer.why_not:
            self.uncovered["weights"] = self._replay_buffer.why_not
        self._pending = PendingSteps(
            every, self._step_log, self._replay_buffer, self._skipped, self, self._unhooked
        )
        self._losses = PassedLosses(self._pending, every, bool(self.optimizers), self.uncovered)
        self._steps = OptimizerSteps(
            self,
            every=every,
            deferred=self._deferred,
            groups=self._step_log.groups,
            pending=self._pending,
            replay=self._replay_buffer,
            calls=self._calls,
        )
        shard = "of the shards of this process" if any(map(is_sharded, self.layers.parameters.values())) else ""
        self.remarks = {"gradients": shard, "updates": "; ".join(filter(None, (self._steps.remark, shard)))}
        for optimizer in self.optimizers:
            if isinstance(optimizer, torch.optim.LBFGS):
                name = type(optimizer).__name__
                self.uncovered["gradients"] = f"{name} runs several passes within one step, by a closure"
        self._attach_to_model()
        self._handles += self._steps.attach()

    @property
    def steps(self) -> int:
        """Optimizer steps seen so far, of the optimizer that stepped first."""
        return self._steps.count

    def is_own(self) -> bool:
        """Whether the training thread asks, or that thread has ended."""
        return self._pending.is_own()

    @property
    def origin(self) -> OriginFacts | None:
        """Where the first NaN or inf came from; None while there is none."""
        return self._replay_buffer.origin

    @property
    def on_broken(self) -> Callable[[], object] | None:
        """See the class."""
        return None if self._end is None else self._broken

    @on_broken.setter
    def on_broken(self, call: Callable[[], object] | None) -> None:
        self._end = call

    def _broken(self) -> None:
        """Have it judged. If that ends the training, undo what the step wrote into buffers: batch norm's means."""
        self._judged += 1
        if self._end is None or self._judged > JUDGED or self._closed:
            return
        try:
            self._end()
        except TrainingStopped:
            with torch.no_grad():
                for name, buffer in self.model.named_buffers():
                    if (before := self._buffers.get(name)) is not None:
                        buffer.copy_(before)
            raise

    @property
    def on_read(self) -> Callable[[], None] | None:
        """Called after each read from the device."""
        return self._pending.on_read

    @on_read.setter
    def on_read(self, call: Callable[[], None] | None) -> None:
        self._pending.on_read = call

    def close(self) -> None:
        """Remove all hooks and read what is pending; the records stay."""
        if self._closed:
            return
        self._closed = True
        self.probes.tell(TrainingProbe.on_training_again)
        self._detach_from_model()
        self._end_training()

    def rest(self) -> None:
        """Watch no more steps; but still the passes without gradients, until the first that has one."""
        if not self._closed:
            self._resting = True
            self._end_training()

    def _end_training(self) -> None:
        if self._pending.closed:
            return
        self._pending.closed = True
        self._calls.close()
        while self._handles:
            self._handles.pop().remove()
        self._steps.close()
        self._unhook_modules()
        self._trace.abandon()
        self._pending.look_at_unfinished(self.steps, losses=False)
        self.read()

    def release(self) -> None:
        """Drop the model, the optimizers and all records; nothing can be read afterwards.

        The parts refer to each other, and would otherwise stay until the next garbage collection.
        """
        self.close()
        vars(self).clear()

    def drop_optimizer_states(self) -> None:
        """Free what the optimizers keep of each parameter: the script has deleted them, but not the model."""
        for optimizer in self._unwrapped:
            optimizer.state = {}

    def step(self, loss: Any, labels: Any = None) -> None:
        """Record loss and labels of the step; count the step itself if there is no optimizer."""
        if self._closed:
            return
        self._pending.trains_here()
        if not self.optimizers:
            self._safely("gradients", self._steps.step_without_optimizer)
        self._safely("loss", self._take, loss, labels)
        if self._end is not None:
            self._safely("loss", self._look_at_loss, loss)

    def _take(self, loss: Any, labels: Any) -> None:
        of_step = self.steps if self._pending.next.passes else self.steps - 1
        if labels is not None:
            self._latest = self._latest[0], labels.detach() if isinstance(labels, Tensor) else None
            if self._steps.samples(of_step):
                self.probes.tell(TrainingProbe.on_labels, of_step, labels)
        self._losses.take(loss, self.steps)

    def _look_at_loss(self, loss: Any) -> None:
        number = None if isinstance(loss, Tensor) and why_unreadable([loss]) else loss_number(loss)
        if number is not None and not math.isfinite(float(number)):
            self._broken()

    def evaluated(self, loss: float) -> None:
        """Record an evaluation loss."""
        self._safely("evaluation", self._losses.take_evaluation, loss, self.steps)

    def read(self) -> None:
        """Read everything pending from the device, except the step that the training thread is in."""
        self._pending.read(self.steps)

    def still(self) -> threading.RLock:
        """Return the lock to hold while facts are taken, so that the training thread reads nothing meanwhile."""
        return self._pending.lock

    def history(self) -> TrainingHistory:
        """Return the run so far."""
        return self._step_log.history(
            self.steps,
            "accelerator" if self.device.type == "cuda" else "process",
            list(self._losses.evaluations) or self.probes[EvaluationLosses].evaluations(),
            frozenset(self._calls.saved_after),
            self.probes[NoGradPasses].history(),
            self._losses.unstepped,
        )

    def ranges(self) -> RangeFacts | None:
        """Return the ranges of the activations; None if none were measured."""
        ranges: RangeFacts | None = self.probes[ActivationRanges].ranges()
        return ranges

    def batch(self) -> FailedBatch | None:
        """Return the batch in which NaN or inf first appeared; None while there is none."""
        return self._replay_buffer.batch()

    def traces(self) -> tuple[TraceFacts, ...]:
        """Return the traced steps."""
        return tuple(self._trace.traces)

    def course(self) -> tuple[Any, ...]:
        """Return the other facts: predictions, inputs, modes, live graphs, units, calls."""
        measured = self.probes.facts("sampled")
        self._safely("calls", self._calls.read)
        return (*measured, *self._calls.facts())

    def dependence(self, deadline: float) -> DependenceFacts | str:
        """Measure what the answers depend on, on a copy of the model and the batch of the last step.

        Args:
            deadline: of `time.monotonic`, after which no further part is measured.

        Returns:
            The reason where that cannot be done.
        """
        from diagnostics.collectors.pytorch.dependence.kept_pass import keep_captured
        from diagnostics.collectors.pytorch.dependence.measure import measure_module

        kept = keep_captured(*self._latest)
        if isinstance(kept, str):
            return kept
        with self._unhooked():
            return measure_module(self.model, kept, deadline, over=False)

    # Hooks. Each runs its work through `_safely`.

    def _attach_to_model(self) -> None:
        self._detach_from_model = hook_around(self._called, self._before_forward, self._after_forward)

    def _before_forward(self, _model: nn.Module, args: Any, kwargs: Any) -> None:
        if self._resting and self._is_trained_again():
            return
        if is_recorded():
            with contextlib.suppress(Exception):  # of types that may do anything when asked
                self._why_unread(tensors((args, kwargs)))
            return
        if self._trace.steps:
            self._trace.abandon()  # of a pass that failed
        self.guard.run_unrecorded("forward passes", self._forward_begins, args, kwargs)

    def _after_forward(self, _model: nn.Module, _args: Any, output: Any) -> None:
        if self._resting and self._is_trained_again():
            return
        if not is_recorded() and not self._unreadable:
            self._unhook_modules()
            if self._trace.steps:
                self._safely("trace", self._trace.close, output)
            if not torch.is_grad_enabled():
                self._evaluated = True
                self.probes.tell(TrainingProbe.on_evaluation_end, self.steps, output)
            elif self._steps.is_sampled or self.steps < FIRST or self._pending.next.passes > FIRST:
                self._safely("backward passes", self._listen, output)
                if self._steps.is_sampled:
                    self._safely("forward passes", self._tell_of_pass, output)

    def _is_trained_again(self) -> bool:
        """Whether passes belong to another training, or to none: this one rests, and there were gradients."""
        self._trained_again = self._trained_again or torch.is_grad_enabled()
        return self._trained_again

    def _tell_of_pass(self, output: Any) -> None:
        kept = self._pending.next.kept
        inputs = None if kept is None or kept.changed else kept.inputs
        self.probes.tell(TrainingProbe.on_pass_end, self.steps, output, inputs)

    def _why_unread(self, given: list[Tensor]) -> bool:
        """Note why a pass cannot be read, if that holds; no operation is needed."""
        why_not = why_unreadable(given)
        if why_not and not self.forwards:
            self.uncovered["forward passes"] = why_not
        return bool(why_not)

    def _forward_begins(self, args: Any, kwargs: Any) -> None:
        alone = not kwargs and len(args) == 1 and type(args[0]) is Tensor  # mostly, and the shortest way
        given = list(args) if alone else tensors((args, kwargs))
        self._unreadable = self._why_unread(given)
        if self._unreadable:
            return
        if not torch.is_grad_enabled():
            mode, self._evaluated = self._called.training, True
            self.probes.tell(TrainingProbe.on_evaluation_begin, self.steps, mode, args, kwargs)
            return
        self._pending.trains_here()
        if self._evaluated:
            self._evaluated = False
            self.probes.tell(TrainingProbe.on_training_again)
        if not self.forwards:
            self.uncovered.pop("forward passes", None)
        self.forwards += 1
        step, row = self._steps.count, self._pending.next
        row.passes += 1
        if self._end is not None and row.passes == 1:
            self._safely("buffers", self._keep_buffers)
        row.kept = kept = keep(step, self._called, args, kwargs, given, self.device)
        self._latest = kept, None
        self._replay_buffer.hold(kept)
        if self._replay_buffer.always:
            self._safely("weights", self._replay_buffer.before_pass, step)
        if step < EARLY and row.passes == 1:
            self.probes.tell(TrainingProbe.on_early_pass, step, args, kwargs)
        if self._steps.is_sampled and row.passes == 1:
            self.probes.tell(TrainingProbe.on_pass_begin, step, args, kwargs)
            if not self.compiled:  # then there are no modules to hook
                self._hook_modules()
        if step in self._trace.steps and row.passes == 1 and not self.compiled:
            self._safely("trace", self._trace.open, step, (args, kwargs))

    def _keep_buffers(self) -> None:
        kept = {name: buffer for name, buffer in self.model.named_buffers() if not buffer.is_meta}
        if sum(buffer.nbytes for buffer in kept.values()) <= LIMIT:
            self._buffers = {name: buffer.detach().clone() for name, buffer in kept.items()}

    def _hook_modules(self) -> None:
        self._unhook_modules()
        if self.hooks.are_wanted():
            self.probes.tell(TrainingProbe.on_modules, self.steps)
            self.hooks.attach()

    def _unhook_modules(self) -> None:
        if self.hooks.are_open:
            self.hooks.close()
            self.probes.tell(TrainingProbe.on_unhooked)

    def _listen(self, output: Any) -> None:
        held = self._pending.next.kept
        kept = None if held is None else weakref.ref(held)
        heard: list[bool] = []
        looked: list[bool] = []
        passes = self._calls.backward_passes()

        def begins(_gradient: Tensor) -> None:
            if not heard:
                heard.append(True)
                self._safely("backward passes", self._backward_begins, kept and kept())
            if not looked and self._calls.backward_passes() != passes:  # and not in `torch.autograd.grad`
                looked.append(True)
                self._safely("backward passes", self._look_at_leftovers)

        outputs = [t for t in tensors(output) if t.requires_grad]
        for tensor in outputs[:OUTPUTS]:
            tensor.register_hook(begins)
        if self._beside is None and outputs:
            self._beside = beside_outputs(outputs, self.layers)

    def _latest_pass(self) -> CapturedPass | None:
        pending = self._pending
        row = pending.next if pending.next.kept is not None or pending.open is None else pending.open
        return row.kept

    def _backward_begins(self, kept: CapturedPass | None) -> None:
        row = self._pending.next
        row.backwards += 1
        self._skipped.begins(self.steps, [pair for held in self.held for pair in held])
        self.probes.tell(TrainingProbe.on_backward, self.steps)
        row.kept = kept or row.kept

    def _look_at_leftovers(self) -> None:
        row = self._pending.next
        is_backward = self._calls.in_new_backward()
        held = self._steps.held_by_leader()
        if held is None or row.clean or not is_backward:
            return
        held = [(number, parameter) for number, parameter in held if number not in (self._beside or ())]
        if all(parameter.grad is None for _, parameter in held):
            row.clean = bool(held)
        elif len(row.leftovers) < OUTPUTS:
            gradients, _ = self.layers.gradients(held)
            if gradients:
                row.leftovers.append(self.layers.norms(gradients).max())

    @contextlib.contextmanager
    def _unhooked(self) -> Iterator[None]:
        """Take the hooks off the model, or the copy might call them."""
        self._detach_from_model()
        self._unhook_modules()
        self._trace.abandon()
        try:
            yield
        finally:
            if not self._closed:
                self._attach_to_model()
