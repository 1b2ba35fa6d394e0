"""Examines and watches each call of a framework's method that trains."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.errors import InvalidInput
from diagnostics.facts.where import Places
from diagnostics.taps.tap import TrainCall, TrainTap, Unsubscribe

from .training import Training, Trainings, not_examined

if TYPE_CHECKING:
    from diagnostics.collectors.shared.pipeline import Pipeline
    from diagnostics.report.report import Report

OFTEN = 4  # trainings of one model that are watched; to begin takes a second, and some call `fit` for each step

# Who watches, arguments and options to call a method with, and what to do at its end.
Joined = tuple[Any, Any, Any, Callable[[], object]]


class Framework(Protocol):
    """What observes the calls of one framework. `arguments` and `options` are those of the call."""

    def model(self, target: Any) -> Any:
        """Return the model that is trained; None if it is not known yet."""

    def pipeline(self, *arguments: Any, **options: Any) -> Pipeline | None:
        """Return what to examine before the training; None if that must wait for its first batch."""

    def join(self, training: Training, train: Any, arguments: Any, options: Any) -> Joined:
        """Watch the training with a callback; `train`: the original method."""

    def keep(self, training: Training, target: Any, pipeline: Any) -> None:
        """Keep what the second look needs of an examined training."""


class TrainCalls:
    """Observes the methods that train.

    A trainer or model that is trained repeatedly is examined once, and watched the first few times.

    Args:
        trainings: each call is added here.
        suspended: each returns a context in which a finder of custom loops looks away: the loop within the method
            is the framework's, and none of the script's own.
    """

    def __init__(
        self,
        trainings: Trainings,
        suspended: tuple[Callable[[], contextlib.AbstractContextManager[None]], ...],
    ) -> None:
        self._trainings, self._suspended = trainings, suspended
        self._times: IdentityMap[Any, int] = IdentityMap()  # that each was trained

    def has_trained(self, target: Any) -> bool:
        """Whether a trainer or model was trained by one of the methods."""
        return target in self._times

    def observe(self, tap: TrainTap, framework: Framework) -> Unsubscribe:
        """Have each call of a method that trains examined first, and watched; return what ends it."""
        return tap.before.subscribe(partial(self._begins, framework))

    def _begins(self, framework: Framework, call: TrainCall, train: Callable[..., Any]) -> None:
        target = call.arguments[0]
        times = self._times[target] = self._times.get(target, 0) + 1
        for suspended in self._suspended:
            call.until_it_ends.enter_context(suspended())
        if times > OFTEN:
            return
        training = self._trainings.begin(Training(places=Places(training=script_line())), framework.model(target))
        if times == 1:
            self._examine(training, framework, call.arguments, call.options)
        joined = self._trainings.guard.attempt(framework.join, training, train, call.arguments, call.options)
        if joined is not None:
            training.watching, call.arguments, call.options, leave = joined
            call.until_it_ends.callback(leave)

    def _examine(self, training: Training, framework: Framework, arguments: Any, options: Any) -> None:
        from diagnostics.api.walk import Walk

        try:
            pipeline = framework.pipeline(*arguments, **options)
            if pipeline is None:
                training.awaits_batch = True
                return
            walk = Walk(pipeline)
            report = walk.report()
            if self._trainings.shows_evaluation:
                report = self._trainings.guard.attempt(_with_evaluation, report, pipeline) or report
            self._trainings.examined(training, report)
            training.walk = walk if pipeline.awaits_end else None
            training.awaits_batch = getattr(pipeline, "awaits_weights", False)
            with own_run(), pipeline.untouched():
                training.rows = pipeline.kept_rows()
            framework.keep(training, arguments[0], pipeline)
        except InvalidInput as reason:  # it trains in a way that cannot be examined
            training.examined = not_examined(arguments[0], str(reason))
        except Exception as fault:
            self._trainings.fault(fault)


def _with_evaluation(report: Report, pipeline: Pipeline) -> Report:
    """Show rows of the evaluation data as well, if they are there before the training."""
    from diagnostics.collectors.shared.batch_view import batch_view, split_parts
    from diagnostics.collectors.shared.vocabulary import scalings_in, tokenizer_in

    with own_run(), pipeline.untouched():
        if (batch := pipeline.evaluation_batch()) is None:
            return report
        sources = pipeline.data_sources()
        tokenizer, scalings = tokenizer_in(*sources), scalings_in(*sources)
        view = batch_view("evaluation", *split_parts(batch), tokenizer=tokenizer, scalings=scalings)
    return replace(report, batches=(*report.batches, view))
