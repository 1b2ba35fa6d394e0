"""Observes the trainings of Hugging Face's `Trainer`."""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any

from diagnostics.run.looks import of_trainer
from diagnostics.run.observers.training import Joined
from diagnostics.run.second_look import Look

from .training import Over, Training, Trainings

if TYPE_CHECKING:
    from diagnostics.collectors.shared.pipeline import Pipeline


class TrainerObserver:
    """Observes the calls of `Trainer.train`; see `training.Framework`.

    Args:
        trainings: each call is added here.
        at_close: takes what is to be undone.
    """

    def __init__(self, trainings: Trainings, at_close: contextlib.ExitStack) -> None:
        self._trainings, self._at_close = trainings, at_close

    def model(self, target: Any) -> Any:
        """Return the model of a trainer; None if it has yet to make it."""
        return getattr(target, "model", None)

    def pipeline(self, trainer: Any, *_: Any, **__: Any) -> Pipeline | None:
        """Return the pipeline to examine before training; None if only its first step can be examined."""
        from diagnostics.collectors.transformers.call_safety import (
            objection,
            objection_to_metric,
            objection_to_rows,
        )
        from diagnostics.collectors.transformers.pipeline import TrainerPipeline

        if objection(trainer) is not None:
            return None
        evaluation = trainer.eval_dataset
        splits = evaluation.values() if isinstance(evaluation, dict) else (evaluation,)
        return TrainerPipeline(
            trainer,
            objection_to_metric=objection_to_metric(trainer),
            compares_splits=all(objection_to_rows(split) is None for split in splits),
            puts_overfit_off=True,
        )

    def join(self, training: Training, _train: Any, arguments: Any, options: Any) -> Joined:
        """Watch the training; examine its first step where it could not be examined before."""
        from diagnostics.api.trainer_callback import TrainerCallback

        callback, trainer = TrainerCallback(quiet=True), arguments[0]
        callback._rests, callback._hold = True, functools.partial(self._hold, training, callback)
        if training.awaits_batch:
            callback._on_first_step = functools.partial(self._examine_first_step, training)
        callback._on_batch = lambda inputs: (run := training.batches()) is not None and run.step(inputs)
        callback._on_broken = self._trainings.on_broken
        trainer.add_callback(callback)

        def leave() -> None:
            trainer.remove_callback(callback)
            callback._rests = sys.exc_info()[0] is None
            callback._safely("end", callback._close)  # a training that failed has had no end
            if callback._watch is not None:
                self._at_close.callback(callback._safely, "end", callback._watch.close)
            self._trainings.guard.attempt(training.overfit_if_needed, lambda: callback._report().history)

        return callback, arguments, options, leave

    def _hold(self, training: Training, callback: Any, model: Any, optimizer: Any) -> tuple[Any, Any]:
        """Return weak twins to watch, so that the script can free both."""
        from diagnostics.collectors.isolation.weak_twin import weak_twin
        from diagnostics.collectors.pytorch.optimizer import unwrapped

        attempt, inner = self._trainings.guard.attempt, unwrapped(optimizer)
        training.model, steps = weak_twin(model), weak_twin(inner)
        if training.model is not model:
            freed = self._freed, training, training.model, callback
            weakref.finalize(model, attempt, *freed).atexit = False
        if steps is not inner:  # the model may outlive it, as where a function trains and returns it
            weakref.finalize(inner, attempt, setattr, steps, "state", {}).atexit = False
        return training.model, steps

    def _freed(self, training: Training, twin: Any, callback: Any) -> None:
        """Keep only the report of a training whose model the script has freed."""
        from diagnostics.collectors.isolation.recording import is_recorded

        if training.model is twin and not is_recorded():
            training.model, training.watching = None, Over(callback._released())

    def keep(self, training: Training, trainer: Any, pipeline: Any) -> None:
        """Keep what the second look needs."""
        from diagnostics.collectors.isolation.weak_twin import weak_twin
        from diagnostics.collectors.transformers.kept_run import keep_run

        model, trainings = pipeline.trainer.model, self._trainings
        twin = None if model is None else weak_twin(model)
        if not trainings.looks_again or twin is None or twin is model:
            return

        def look() -> Look | None:
            run = trainings.guard.attempt(keep_run, trainer, pipeline.replaces_loss())
            if run is not None:
                training.batches = weakref.ref(run)
            return of_trainer(twin, pipeline, run, trainer.args)

        trainings.keep(training, look, twin)
        weakref.finalize(model, trainings.guard.attempt, trainings.freed, training).atexit = False

    def _examine_first_step(self, training: Training, trainer: Any, inputs: Any) -> Any:
        """Examine the first step while it runs, where a Trainer's code must not be called outside its training."""
        from diagnostics.api.walk import Walk
        from diagnostics.collectors.transformers.call_safety import objection
        from diagnostics.collectors.transformers.first_step import TrainerStepObserver

        def examine(step: Any) -> None:
            self._trainings.examined(training, Walk(step).report())
            self.keep(training, trainer, step)

        return TrainerStepObserver(trainer, inputs, why=objection(trainer) or "", deliver=examine)
