"""Finds the training loops of an unmodified script by observing its calls of PyTorch.

A loop is an optimizer that steps, the modules whose parameters it holds, and the losses whose backward passes led
to the step. A Trainer's loop is excluded: see `LoopFinder.suspended`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.recording import is_recorded
from diagnostics.collectors.isolation.weak_twin import weak_twin
from diagnostics.collectors.probe import Probes
from diagnostics.collectors.pytorch.discover import probes
from diagnostics.collectors.pytorch.discover.optimizers import HandUpdates
from diagnostics.collectors.pytorch.watch.record.calls.script_calls import calls
from diagnostics.facts.calls import RestoreFacts
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import Source, Tap, Unsubscribe, subscribe

from .first_step import FirstStepRecorder
from .first_step_pipeline import FirstPass, FirstStepPipeline
from .loop_probe import LoopProbe
from .loss_calls import hold_losses
from .optimizers import ScriptOptimizers, ShortTrainings, held_by, is_idle
from .probes.remade_optimizers import RemadeOptimizers

MAX_LOOPS = 16  # watched at a time
ROOTS = 64  # modules that a script calls directly; a loop that calls more holds its layers in a list
LOSSES = 1024  # backward passes for one step
IDLE = 3  # steps without any gradient: one may be made to please a scheduler
NAMED = 3  # modules that a loop calls one by one, in the name of their model
ALONE = 20  # steps of one optimizer with none of a loop's own between: a second phase, and no part of the loop


class Watching(Protocol):
    """What the finder needs of a watcher; `diagnostics.Watch` has it."""

    def step(self, loss: Any = None) -> None:
        """Take the loss of a pass."""

    def close(self) -> None:
        """Stop watching."""


W = TypeVar("W", bound=Watching)


class LoopFinder(Generic[W]):
    """Calls `watch` with each model that begins to train and its optimizers, and passes losses to the result.

    Calls `examine` with the first step of a loop, before the weights change.

    A model is watched from its first forward pass on, if by then an optimizer holds parameters of it. If a loop
    calls several modules for one optimizer, they are watched together from that optimizer's first step on. An
    optimizer that holds no parameter of any called module, but tensors of the same shapes, is assigned to that
    module: it holds the parameters of a model that was discarded.

    A loop whose optimizers the script has deleted, as a function does that makes them and returns, rests: its
    evaluations are still watched, until the script makes another optimizer or deletes the model.

    Attributes:
        watches: what `watch` returned for each loop that is not over, the least recently stepped first.
        on_call: called with a module before its calls with gradients that are no part of another's; or None.
        watched_by: by model, what watches the loop that trains it, or did.
        first: records the first pass of each model.
        report: called with what watches a loop, and with facts that are known only when it goes on, or is over.
        short: the trainings that are not watched, because many models were before and they made few steps.
    """

    def __init__(
        self,
        watch: Callable[[nn.Module, list[Optimizer]], W],
        fault: Callable[[Exception], None],
        examine: Callable[[W, FirstStepPipeline], None] = lambda watching, step: None,
        on_finished: Callable[[W], None] = lambda watching: None,
        compare: Callable[[W, tuple[Any, ...]], None] = lambda watching, facts: None,
        on_alternating: Callable[[W], None] = lambda watching: None,
        on_rest: Callable[[W], None] = lambda watching: None,
    ):
        """Start observing, until `close`.

        Args:
            watch: called once per loop.
            fault: called with each fault of this library; nothing is raised into the script.
            examine: called at most once per loop, with the result of `watch` and the first step.
            on_finished: called with the closed result of `watch` when the script has deleted the loop's model, or
                its optimizers and then made another, or when there are too many loops. The finder drops its
                reference.
            compare: see `report`.
            on_alternating: called with the result of `watch` for each loop that steps in turn with another, as
                those of two players do.
            on_rest: called with the result of `watch` when the script has deleted the loop's optimizers.
        """
        self._watch, self._examine, self._on_finished, self.report = watch, examine, on_finished, compare
        self._on_alternating, self._on_rest = on_alternating, on_rest
        self._resting: list[W] = []
        self._stepped: IdentityMap[W, int] = IdentityMap()
        self._made_before: IdentityMap[W, int] = IdentityMap()  # optimizers, before each loop began
        self._guard = FaultGuard(on_fault=fault)
        self.watches: list[W] = []
        self.on_call: Callable[[nn.Module], object] | None = None
        self._optimizers = ScriptOptimizers()
        # None where the loop is over, and the script has the optimizer still.
        self._watch_of: IdentityMap[Optimizer, W | None] = IdentityMap()
        self.short = ShortTrainings()
        self._alone: IdentityMap[Optimizer, int] = IdentityMap()  # steps of those that are of no loop yet
        self._idle: IdentityMap[Optimizer, int] = IdentityMap()  # how many of its latest found no gradient
        self._watched: IdentityMap[nn.Module, None] = IdentityMap()
        # Modules that were called and are not watched yet; how many optimizers there were at the time.
        self._roots: IdentityMap[nn.Module, int] = IdentityMap()
        self._losses: deque[Tensor] = deque(maxlen=LOSSES)
        self._hand_updates, self._by_hand = HandUpdates(), cast("W | None", None)
        self._unscaled: tuple[weakref.ref[Tensor], weakref.ref[Tensor], Tensor] | None = None
        self._paused = 0
        # By module, where it is a loop's only one: who watches it, and which optimizers train it.
        self._loops: IdentityMap[nn.Module, tuple[W, list[weakref.ref[Optimizer]]]] = IdentityMap()
        self.watched_by: IdentityMap[nn.Module, W] = IdentityMap()
        self.first = FirstStepRecorder(self._deliver, self._guard, lambda: bool(self._paused) or is_own_run())
        self._probes = Probes(probes, LoopProbe, self, self._probe)
        self._finalizers: list[weakref.finalize[..., Any]] = []
        self._passes_before = taps.backward.passes
        # First: at a step, the record of calls is up to date before a loop begins with that step.
        self._release_calls = calls.hold(fault, self._loaded)
        self._release_losses = hold_losses()
        loaders = self.first.loaders
        self._unsubscribe = subscribe(
            self._safely,
            (taps.optimizer_init.before, self._made),
            (taps.optimizer_step.before, self._before_step),
            (taps.optimizer_step.after, self._after_step),
            (taps.optimizer_load_state_dict.before, self._restored),
            (taps.module_load_state_dict.before, self._restored),
            (taps.backward.before, self._backward),
            (taps.backward.after, self._after_backward),
            (taps.scaler_scale.after, self._scaled),
            (taps.loader_iter.after, loaders.begins),
            (taps.loader_next.after, loaders.gives),
        )
        self._unsubscribe_calls = taps.module_call.before.subscribe(self._observed_call)  # also while suspended

    @property
    def backward_passes(self) -> int:
        """How many backward passes the script has made, with or without a loop that was found."""
        return taps.backward.passes - self._passes_before

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Observe nothing within: another watcher covers this training."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1
            self._roots.clear()

    def observe(self, init: Tap, step: Source) -> Unsubscribe:
        """Observe optimizers that are not PyTorch's, too; return what ends it."""
        return subscribe(
            None,
            (init.before, partial(self._guard.attempt, self._made)),  # while suspended, it may train later
            (step.before, partial(self._safely, self._before_step)),
            (step.after, partial(self._safely, self._after_step)),
        )

    def close(self) -> None:
        """Remove all hooks and patches, and close all watchers."""
        for watched, fact in self._probes.facts("end"):
            self.report(watched, (fact,))
        self._unsubscribe()
        self._unsubscribe_calls()
        self.first.end()
        for watched in self.watches:
            self._safely(watched.close)
        for finalizer in self._finalizers:
            finalizer.detach()
        self._safely(self._release_calls)
        self._release_losses()

    def _observed_call(self, call: taps.ModuleCall) -> None:
        """Observe an outermost call of a module."""
        module, inputs = call.module, (call.arguments, call.options)
        learns = torch.is_grad_enabled()
        if self.short.watched and not (learns and module.training):
            self._probes.tell(LoopProbe.on_evaluation, module, inputs)
        self._probes.tell(LoopProbe.on_call, call)
        if not learns:
            return
        if self.on_call is not None:  # also while suspended, within a Trainer
            self._guard.attempt(self.on_call, module)
        if module not in self._watched:
            self._safely(self._called, module)
        if not self.first.wants(module):
            return
        seen = self._safely(self.first.called, module, *inputs)
        if seen is not None:
            call.on_return.append(partial(self._safely, self.first.returned, seen))
            if seen.wanted:
                call.on_inner.append(partial(self._safely, seen.inner.add))

    def _safely(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        """Return the result of the work; None if it raises, or while suspended."""
        if self._paused:
            return None
        return self._guard.attempt(work, *arguments, **options)

    def _probe(self, _part: str, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> None:
        self._safely(work, *arguments, **options)

    # Events of the script. Each of these is called through `_safely`.

    def _made(self, optimizer: Optimizer, *_arguments: Any, **_options: Any) -> None:
        self._end_resting()  # what follows is a training, perhaps of the same model
        self._optimizers.add(optimizer)

    def _called(self, module: nn.Module) -> None:
        if self._roots.get(module) == self._optimizers.count or isinstance(module, torch.jit.ScriptModule):
            return  # TorchScript takes no hooks
        mine = {id(parameter) for parameter in module.parameters() if parameter.requires_grad}
        unwatched = [optimizer for optimizer in self._optimizers.living() if optimizer not in self._watch_of]
        of_module = [optimizer for optimizer in unwatched if mine & held_by(optimizer)]
        if put_off := module not in self.watched_by and self.short.puts_off(module):
            self.first.skip(module)
        if not put_off and of_module and all(held_by(optimizer) <= mine for optimizer in of_module):
            self._begin(module, of_module)
        elif mine and len(self._roots) < ROOTS:
            self._roots[module] = self._optimizers.count

    def _backward(self, tensors: Any = None, *_arguments: Any, **_options: Any) -> None:
        loss = tensors[0] if isinstance(tensors, list | tuple) and len(tensors) == 1 else tensors
        if isinstance(loss, Tensor) and loss.numel() == 1:
            value = loss.detach()
            if self._unscaled is not None and self._unscaled[0]() is loss:
                _, original, value = self._unscaled
                loss = loss if original() is None else original()
            self._losses.append(value)
            self.first.backward(loss, value)
        else:
            self.first.end()  # several losses at once, or a vector of them: which one it is cannot be told

    def _after_backward(self, *_arguments: Any, **_options: Any) -> None:
        """Take a step of a loop that has no optimizer: nothing else says where it ends."""
        if self._optimizers.count or not self._losses:
            return
        if not self._by_hand and (updated := self._hand_updates.found(list(self._roots))):
            self._by_hand = self._begin(updated[0] if len(updated) == 1 else _joined(updated), [], updated)
        if self._by_hand is not None:
            self._by_hand.step(self._losses[-1])
            self._losses.clear()

    def _restored(self, *arguments: Any, **options: Any) -> None:
        self._probes.tell(LoopProbe.on_load, *arguments, **options)

    def _scaled(self, result: Any, _scaler: Any, outputs: Any) -> None:
        if isinstance(outputs, Tensor) and isinstance(result, Tensor) and result is not outputs:
            self._unscaled = weakref.ref(result), weakref.ref(outputs), outputs.detach()

    def _before_step(self, optimizer: Optimizer, *_: Any) -> None:
        idle = self._idle[optimizer] = self._idle.get(optimizer, 0) + 1 if is_idle(optimizer) else 0
        if optimizer not in self._watch_of:
            if not self.short.waits(optimizer):
                self._late(optimizer)
        elif idle == ALONE:
            self._of_another_model(optimizer)
        if optimizer not in self._watch_of:
            alone = self._alone[optimizer] = self._alone.get(optimizer, 0) + 1
            if alone == ALONE or (alone == 1 and self._takes_over(optimizer)):
                self._next_phase(optimizer)

    def _takes_over(self, optimizer: Optimizer) -> bool:
        """Return whether an optimizer begins a second phase with its first step.

        The loop has gone on for long; since it began, the script has made this optimizer alone, for at least the
        same parameters. An optimizer for a few steps, as in meta-learning, is one of many.
        """
        held = held_by(optimizer)
        for watched, references in self._loops.values():
            before = {each for reference in references if (of := reference()) is not None for each in held_by(of)}
            if before and before <= held and self._stepped.get(watched, 0) >= ALONE:
                return self._optimizers.count - self._made_before[watched] == 1
        return False

    def _next_phase(self, optimizer: Optimizer) -> None:
        """Start a new loop for a watched model that another optimizer now trains, in part or whole.

        The script may still hold the first optimizer. Two optimizers that alternate are one loop, not two phases.
        """
        held = held_by(optimizer)
        for model, (watched, _) in list(self._loops.items()):
            if held.intersection(map(id, model.parameters())):
                self._end(watched)
                self._begin(model, [optimizer])
                return

    def _of_another_model(self, optimizer: Optimizer) -> None:
        """Start a new loop for a model that is trained now with the optimizer of a first one."""
        if meant := self._meant(optimizer):
            if (watched := self._watch_of[optimizer]) is not None:
                self._end(watched)
            self._begin(meant[0] if len(meant) == 1 else _joined(meant), [optimizer], meant)

    def _meant(self, optimizer: Optimizer) -> list[nn.Module]:
        idle = self._idle[optimizer] >= IDLE
        return [root for root in list(self._roots) if self._optimizers.is_meant_for(optimizer, root, idle)]

    def _late(self, optimizer: Optimizer) -> None:
        """Start a loop at an optimizer's first step, where no single called module holds all its parameters."""
        roots, held = list(self._roots), held_by(optimizer)
        called = [root for root in roots if held.intersection(map(id, root.parameters()))]
        if not called:
            called = self._meant(optimizer)
        if not called and not self._idle[optimizer] and not self._is_watched(held):
            called = self._optimizers.owners_of(optimizer)
        parts = {id(part) for root in called for part in root.modules() if part is not root}
        called = [root for root in called if id(root) not in parts]  # a layer may be tried before it is built in
        if called:
            self._begin(called[0] if len(called) == 1 else _joined(called), [optimizer], called)

    def _is_watched(self, held: set[int]) -> bool:
        return any(held.intersection(map(id, model.parameters())) for model in list(self._loops))

    def _after_step(self, optimizer: Optimizer, *_: Any) -> None:
        losses, watched = list(self._losses), self._watch_of.get(optimizer)
        self._losses.clear()
        self.first.stepped()
        if watched is not None:
            self._alone.clear()
            for loss in losses:
                watched.step(loss)
            if self.watches[-1] is not watched:
                if watched in self._stepped and self.watches[-1] in self._stepped:
                    self._on_alternating(watched)
                    self._on_alternating(self.watches[-1])
                self.watches.remove(watched)
                self.watches.append(watched)
            self._stepped[watched] = self._stepped.get(watched, 0) + 1
        steps = 0 if watched is None else self._stepped[watched]
        self._probes.tell(LoopProbe.on_step, optimizer, watched, steps)

    def _begin(self, model: nn.Module, optimizers: list[Optimizer], called: list[nn.Module] | None = None) -> W:
        self._end_resting()
        called = [model] if called is None else called
        before = self.watched_by.get(model)
        self.short.watched += before is None
        self._watched.update((module, None) for module in called)
        # A joined model would keep its parts alive.
        held = model if len(called) == 1 else _joined([weak_twin(module) for module in called])
        watched = self._watch(held, optimizers)
        self.watches.append(watched)
        self._made_before[watched] = self._optimizers.count
        self._watch_of.update((optimizer, watched) for optimizer in optimizers)
        for module in called:
            self._roots.pop(module, None)
            self._when_gone(module, partial(self._end, watched))
        references = [weakref.ref(module) for module in called]
        for optimizer in optimizers:
            self._when_gone(optimizer, partial(self._without_optimizer, watched, references))
        if len(self.watches) > MAX_LOOPS:
            self._end(self.watches[0])
        if (seen := self.first.begun(called)) is not None:
            self._examine(watched, self._first_step(model, optimizers, seen))
        self.watched_by[model] = watched
        self._probes.tell(LoopProbe.on_loop, model, watched, before)
        self._loops[model] = watched, [weakref.ref(optimizer) for optimizer in optimizers]
        return watched

    def _deliver(self, module: nn.Module, seen: FirstPass) -> bool:
        """Examine the first step of a module's loop; return whether the loop is known."""
        self._probes.tell(LoopProbe.on_first_pass, module, seen)
        if (loop := self._loops.get(module)) is None:
            return False
        watching, references = loop
        optimizers = [optimizer for reference in references if (optimizer := reference()) is not None]
        self._examine(watching, self._first_step(module, optimizers, seen))
        return True

    def _first_step(self, model: nn.Module, optimizers: list[Optimizer], seen: FirstPass) -> FirstStepPipeline:
        seen.places = dataclasses.replace(seen.places, optimizer=self._optimizers.made_at(optimizers))
        return FirstStepPipeline(model, optimizers, seen, self._optimizers.all_held())

    def _when_gone(self, held: Any, then: Callable[[], None]) -> None:
        finalizer = weakref.finalize(held, then)
        finalizer.atexit = False
        self._finalizers = [*(other for other in self._finalizers if other.alive), finalizer]

    def _without_optimizer(self, watched: W, modules: list[weakref.ref[nn.Module]]) -> None:
        """Let a loop rest if none of its optimizers is left; the script may make another for the same model."""
        if watched in self._watch_of.values():
            return
        living = [module for reference in modules if (module := reference()) is not None]
        again = [module for module in living if not self._probes[RemadeOptimizers].is_known(module)]
        for module in again:
            self._watched.pop(module, None)
        if watched in self.watches and len(again) == len(modules) and not is_recorded():
            self._forget(watched)
            self.watches.remove(watched)
            self.watches.insert(0, watched)  # it steps no more
            self._resting.append(watched)
            self._guard.attempt(self._on_rest, watched)
        else:
            self._end(watched)

    def _end_resting(self) -> None:
        resting, self._resting = self._resting, []
        for watched in resting:
            self._end(watched)

    def _end(self, watched: W) -> None:
        """Stop watching a loop, and drop it; at the end, if a compiler or tracer records meanwhile."""
        if watched not in self.watches or is_recorded():
            return
        self.watches.remove(watched)
        self._forget(watched)
        self._guard.attempt(self._finish, watched)

    def _forget(self, watched: W) -> None:
        self._by_hand = None if self._by_hand is watched else self._by_hand
        for optimizer in [optimizer for optimizer, of in self._watch_of.items() if of is watched]:
            self._watch_of[optimizer] = None
        for module in [module for module, (of, _) in self._loops.items() if of is watched]:
            del self._loops[module]

    def _finish(self, watched: W) -> None:
        watched.close()
        self._on_finished(watched)

    def _loaded(self, model: nn.Module, facts: RestoreFacts) -> None:
        """Report a load of weights after the end of their training."""
        parameters = {id(parameter) for parameter in model.parameters()}
        for module, watched in self.watched_by.items():
            if any(id(parameter) in parameters for parameter in module.parameters()):
                self.report(watched, (facts,))
                return


class _Joined(nn.Module):  # type: ignore[misc]  # mypy does not follow torch
    """One model of the modules that a loop calls one by one; never called itself."""

    def __init__(self, modules: list[nn.Module]) -> None:
        super().__init__()
        for number, module in enumerate(modules):
            self.add_module(f"{type(module).__name__}-{number}", module)


def _joined(modules: list[nn.Module]) -> nn.Module:
    """Combine modules into one, named "Encoder and Decoder" in a report."""
    names = list(dict.fromkeys(type(module).__name__ for module in modules))
    others = len(names) - NAMED
    name = " and ".join([*names[:NAMED], *([f"{others} more"] if others > 0 else [])])
    return type(name, (_Joined,), {})(modules)
