"""Observes the plain PyTorch loops of a script."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.calls import RestoreFacts
from diagnostics.report.build import extended
from diagnostics.run.looks import of_loop
from diagnostics.taps.tap import subscribe

from .training import Over, Training, Trainings

if TYPE_CHECKING:
    from diagnostics.api.watch import Watch
    from diagnostics.collectors.pytorch.discover.batch_replay import BatchRecorder
    from diagnostics.collectors.pytorch.discover.first_step_pipeline import FirstStepPipeline
    from diagnostics.collectors.pytorch.discover.loops import LoopFinder
    from diagnostics.collectors.pytorch.discover.step_times import StepTimer
    from diagnostics.facts.step_times import StepTimes


class LoopObserver:
    """Watches each loop from its first forward pass on, and examines its first step while that runs.

    Args:
        trainings: each loop is added here.
        at_close: takes what is to be undone.
        keep_batches: whether to keep the latest batches of PyTorch's loaders, for `save_batches`.
        first_batches: a file of `save_batches`, whose batches the first loader yields first.
        on_call: is called with each module that the script calls; None for no call.
    """

    def __init__(
        self,
        trainings: Trainings,
        at_close: contextlib.ExitStack,
        *,
        keep_batches: bool = False,
        first_batches: Path | None = None,
        on_call: Callable[[Any], object] | None = None,
    ) -> None:
        self._trainings, self._at_close, self._on_call = trainings, at_close, on_call
        self._keep_batches, self._first_batches = keep_batches, first_batches
        self._finder: LoopFinder[Watch] | None = None
        self._timer: StepTimer | None = None
        self._of_watch: IdentityMap[Any, Training] = IdentityMap()
        self._recorder: BatchRecorder | None = None

    def find(self) -> None:
        """Observe from now on: PyTorch is there."""
        self._attach_to_loaders()
        from diagnostics.collectors.pytorch.discover.loops import LoopFinder
        from diagnostics.collectors.pytorch.discover.step_times import StepTimer

        self._timer = StepTimer(self._trainings.guard)
        self._at_close.callback(self._timer.close)
        self._finder = LoopFinder(
            self._watch,
            self._trainings.fault,
            self._examine_step,
            self._finished,
            self._examine_evaluation,
            self._alternates,
            self._rests,
        )
        self._at_close.callback(self._finder.close)
        if self._on_call is not None:
            self._finder.on_call = self._on_call

    def with_fastai(self, _module: Any) -> None:
        """Observe fastai's optimizers, too."""
        if self._finder is not None:
            from diagnostics.taps import fastai

            self._at_close.callback(self._finder.observe(fastai.optimizer_init, fastai.optimizer_step))

    def with_rate_search(self, _module: Any) -> None:
        """Overlook ``Learner.lr_find``, which raises the rate until the loss diverges."""
        from diagnostics.taps.fastai import lr_find

        search = contextlib.ExitStack()  # `lr_find` does not call itself
        unsubscribe = subscribe(
            None,
            (lr_find.before, lambda *_, **__: search.enter_context(self.suspended())),
            (lr_find.ended, lambda *_, **__: search.close()),
        )
        self._at_close.callback(unsubscribe)

    def suspended(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which no loop is observed."""
        return contextlib.nullcontext() if self._finder is None else self._finder.suspended()

    @property
    def backward_passes(self) -> int:
        """How many backward passes a script has made with PyTorch."""
        return 0 if self._finder is None else self._finder.backward_passes

    @property
    def times(self) -> StepTimes | None:
        """How long the parts of a step take, over all PyTorch loops of the script; None if too few were seen."""
        return None if self._timer is None else self._timer.times()

    @property
    def short(self) -> int:
        """How many trainings are not watched, because many were before and they were short."""
        return 0 if self._finder is None else self._finder.short.count

    def save_batches(self, path: Path) -> int:
        """Write the latest batches to a file, and return their number; 0 if there are none."""
        return 0 if self._recorder is None else self._recorder.save(path)

    def _attach_to_loaders(self) -> None:
        if self._keep_batches:
            from diagnostics.collectors.pytorch.discover.batch_replay import BatchRecorder

            self._recorder = BatchRecorder()
            self._at_close.callback(self._recorder.close)
        if self._first_batches is not None:
            from diagnostics.collectors.pytorch.discover.batch_replay import BatchPlayer

            self._at_close.callback(BatchPlayer(self._first_batches).close)

    def _watch(self, model: Any, optimizers: list[Any]) -> Watch:
        from diagnostics.api.watch import watch
        from diagnostics.collectors.isolation.weak_twin import weak_twin

        # A script that trains many models, one after the other, must be able to free each of them.
        twin = weak_twin(model)
        watching = watch(twin, [weak_twin(optimizer) for optimizer in optimizers])
        watching._probe.on_broken = self._trainings.on_broken
        watching._probe.trained_before = self._finder is not None and model in self._finder.watched_by
        training = Training(watching=watching, model=None if twin is model else twin)
        self._of_watch[watching] = self._trainings.begin(training, model)
        return watching

    def _finished(self, watching: Any) -> None:
        training = self._of_watch[watching]
        training.watching = Over(watching.release())
        training.model = None
        self._trainings.freed(training)

    def _rests(self, watching: Any) -> None:
        watching._probe.rest()
        watching._probe.drop_optimizer_states()

    def _alternates(self, watching: Any) -> None:
        training = self._of_watch[watching]
        training.trained_alone = False
        if (batches := training.batches()) is not None:  # no copy can be trained without the other player
            self._trainings.guard.attempt(batches.drop)

    def _examine_step(self, watching: Any, step: FirstStepPipeline) -> None:
        from diagnostics.api.walk import Walk

        training = self._of_watch[watching]
        training.places = step.seen.places
        self._trainings.examined(training, Walk(step).report())
        if training.model is not None:

            def on_kept(kept: Any) -> None:
                training.batches = weakref.ref(kept)

            guard = self._trainings.guard
            look = functools.partial(of_loop, training.model, step, guard, self._at_close, on_kept)
            self._trainings.keep(training, look, training.model)

    def _examine_evaluation(self, watching: Any, facts: tuple[Any, ...]) -> None:
        """Evaluate the rules on facts that are known only when the model is evaluated, or after its training."""
        training = self._of_watch[watching]
        if any(isinstance(fact, RestoreFacts) for fact in facts):  # weights kept over several trainings of a model
            while training.examined is None and training.continues is not None:
                training = training.continues
        if training.examined is not None:
            training.extend(facts)
        elif isinstance(training.watching, Over):
            training.watching.final = extended(training.watching.final, facts)
