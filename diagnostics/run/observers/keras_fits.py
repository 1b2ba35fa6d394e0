"""Observes `fit` of compiled Keras models."""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.probe import Probes
from diagnostics.config import shows_batch
from diagnostics.report.report import Report
from diagnostics.run.looks import of_keras
from diagnostics.run.observers.training import Joined

from .training import Training, Trainings, not_examined

if TYPE_CHECKING:
    from diagnostics.api.keras_callback import KerasCallback
    from diagnostics.collectors.keras.discover.evaluations import Delivered, Evaluations
    from diagnostics.collectors.keras.discover.step_answers import StepAnswers
    from diagnostics.collectors.keras.discover.training_calls import TrainingCalls
    from diagnostics.collectors.keras.discover.unread_losses import LayerLosses
    from diagnostics.collectors.keras.discover.untrained_instances import UntrainedInstanceProbe
    from diagnostics.collectors.keras.examine.drawn_batches import FirstBatches
    from diagnostics.collectors.keras.examine.reported_metrics import ReportedMetrics
    from diagnostics.collectors.keras.watch.sampled_rows import SampledRows
    from diagnostics.collectors.shared.pipeline import Pipeline
    from diagnostics.facts.loss_graph import LossGraph
    from diagnostics.facts.step_times import BatchSource
    from diagnostics.facts.training import TrainingHistory
    from diagnostics.facts.where import Where


class FitObserver:
    """Observes the calls of `fit`; see `training.Framework`.

    Args:
        trainings: that the calls belong to.
        graph: returns the graph of the loss of a traced step; None if it is not known.
        losses: that layers add.
        made_at: returns the line of the script that created an optimizer.
    """

    def __init__(
        self,
        trainings: Trainings,
        graph: Callable[[], LossGraph | None],
        losses: LayerLosses,
        made_at: Callable[[Any], Where | None] = lambda optimizer: None,
    ) -> None:
        self._trainings, self._graph, self._losses, self._made_at = trainings, graph, losses, made_at
        self._evaluations: Evaluations | None = None
        self._reported: ReportedMetrics | None = None
        self._calls: TrainingCalls | None = None
        self.instances: UntrainedInstanceProbe | None = None  # once Keras on TensorFlow is there

    def find_evaluations(self, at_close: contextlib.ExitStack) -> None:
        """Observe `evaluate` and `predict`, too."""
        from diagnostics.collectors.keras.discover.evaluations import Evaluations
        from diagnostics.collectors.keras.discover.training_calls import TrainingCalls
        from diagnostics.collectors.keras.discover.untrained_instances import UntrainedInstanceProbe
        from diagnostics.collectors.keras.examine.reported_metrics import ReportedMetrics

        self._evaluations = Evaluations(self._trainings.guard)
        at_close.callback(self._evaluations.close)
        self._reported = ReportedMetrics(self._trainings.guard)
        at_close.callback(self._reported.close)
        self.instances = UntrainedInstanceProbe(self._trainings.guard)
        at_close.callback(self.instances.close)
        self._calls = TrainingCalls(self._trainings.guard)
        at_close.callback(self._calls.close)
        at_close.callback(self._trainings.guard.attempt, self._add_calls, self._calls)

    def model(self, target: Any) -> Any:
        """Return the model, whose method was called."""
        return target

    def pipeline(self, *arguments: Any, **options: Any) -> Pipeline | None:
        """Return the pipeline of a `fit` whose data can be read without side effects; None for any other."""
        import keras

        if keras.backend.backend() != "tensorflow":
            return None
        from diagnostics.collectors.keras.examine.build import keras_pipeline
        from diagnostics.collectors.keras.losses import by_class
        from diagnostics.collectors.keras.replayable import can_be_read, planned_steps

        model, data, evaluation, class_weights = _given_to_fit(*arguments, **options)
        if not can_be_read(data):
            return None
        if not can_be_read(evaluation):
            evaluation = None
        pipeline = keras_pipeline(model, data, None, None, evaluation, class_weights)
        pipeline.weights_of_classes = by_class(options.get("class_weight"))
        pipeline.rows_at_once = options.get("batch_size")
        pipeline.planned_steps = planned_steps(*arguments, **options)
        pipeline.must_go_unnoticed = True
        pipeline.preprocesses = False  # a model of KerasHub has done so before it calls this `fit`
        return pipeline

    def join(self, training: Training, fit: Any, arguments: Any, options: Any) -> Joined:
        """Watch the training; examine its first batch where it could not be examined before."""
        from diagnostics.api.keras_callback import KerasCallback
        from diagnostics.collectors.keras import fit_probes
        from diagnostics.collectors.keras.fit_probes import FitCall, FitProbe

        made_at = self._made_at(getattr(arguments[0], "optimizer", None))
        training.places = replace(training.places, optimizer=made_at)
        callback, call = KerasCallback(quiet=True), inspect.signature(fit).bind(*arguments, **options)
        given: Any = call.arguments.get("callbacks") or []
        if hasattr(given, "on_train_begin") and hasattr(given, "append"):  # a CallbackList
            given.append(callback)
        else:
            given = [*given] if isinstance(given, list | tuple) else [given]
            call.arguments["callbacks"] = [*given, callback]
        if training.rows is None and (training.awaits_batch or training.plain_loss is not None):
            callback._sampled_rows = _sampled_rows()
        callback._batch_source = self._trainings.guard.attempt(_batch_source, call.arguments.get("x"))
        callback._on_broken = self._trainings.on_broken
        callback._on_batch = lambda batch: (kept := training.batches()) is not None and kept.take(batch)
        fitted = FitCall(arguments[0], call.arguments, callback._epochs, self._graph, self._losses, shows_batch())
        probes = Probes(fit_probes, FitProbe, fitted, lambda _part, work: self._trainings.guard.attempt(work))
        before = probes.facts("first step")
        if self._calls is not None:
            self._trainings.guard.attempt(self._calls.fit_begins, arguments[0])
        compared = self._compare_evaluations(training, callback, arguments[0], call.arguments)
        training.step_answers = self._trainings.guard.attempt(self._step_answers, arguments[0])

        def end() -> None:
            compared()
            if training.step_answers is not None:
                training.step_answers.close()
                if not self._trainings.keeps(training):
                    training.step_answers = None
            self._trainings.guard.attempt(self._add_trained, training, arguments[0])
            self._trainings.guard.attempt(_keep_drawn, training, callback)
            if before:
                training.examined = training.examined or Report(f"examined {type(arguments[0]).__name__}")
            found = (*before, *probes.facts("end"))
            self._trainings.guard.attempt(_add, training, arguments[0], found)
            self._trainings.guard.attempt(training.overfit_if_needed, lambda: _history(callback))
            self._trainings.guard.attempt(callback._release)

        if not training.awaits_batch:
            return callback, call.args, call.kwargs, end
        callback._first_batches = first = self._await_batches(
            training, callback._sampled_rows, *_given_to_fit(*arguments, **options)
        )

        def leave() -> None:
            first.close()
            end()

        return callback, call.args, call.kwargs, leave

    def keep(self, training: Training, model: Any, pipeline: Any) -> None:
        """Keep what the second look needs, once there are weights."""
        training.plain_loss = getattr(pipeline, "plain_loss", None)
        if not training.awaits_batch:
            self._keep(training, model, pipeline)

    def _keep(self, training: Training, model: Any, pipeline: Any) -> None:
        """Keep what the second look needs; the batches only as long as it wants them."""

        def on_kept(kept: Any) -> None:
            training.batches = weakref.ref(kept)

        guard, reported = self._trainings.guard, self._reported_by

        def step_answers() -> StepAnswers | None:
            return training.step_answers

        look = functools.partial(of_keras, model, pipeline, guard, reported, on_kept, step_answers)
        self._trainings.keep(training, look)

    def _step_answers(self, model: Any) -> StepAnswers | None:
        """Listen to the own train step of a small model, if there will be a second look."""
        import keras

        if keras.backend.backend() != "tensorflow" or not self._trainings.looks_again:
            return None
        from diagnostics.collectors.keras.dependence.subject import size_of
        from diagnostics.collectors.keras.discover.step_answers import StepAnswers
        from diagnostics.collectors.keras.model import has_own_train_step
        from diagnostics.run.looks import LARGEST_HELD

        if not has_own_train_step(model) or size_of(model) > LARGEST_HELD:
            return None
        return StepAnswers(self._trainings.guard.attempt)

    def _reported_by(self, model: Any, deadline: float) -> Any:
        if self._reported is None:
            return None
        return self._trainings.guard.attempt(self._reported.ledger, model, deadline)

    def _add_trained(self, training: Training, model: Any) -> None:
        """Record the model, which may be called in training mode, or another instance of it evaluated."""
        if self._calls is not None:
            self._calls.fit_ended(model, training)
        if self.instances is not None:
            self.instances.trained(model.trainable_variables, model, training)

    def _add_calls(self, calls: TrainingCalls) -> None:
        for training, found in calls.facts():
            training.extend((found,))

    def _compare_evaluations(
        self, training: Training, callback: KerasCallback, model: Any, given: dict[str, Any]
    ) -> Callable[[], object]:
        """Return what compares, at the end of `fit`, its rows with those of its validation data."""
        if self._evaluations is None:
            return lambda: None
        validation = given.get("validation_data")
        if isinstance(validation, tuple | list) and validation:
            validation = (validation[0], None)

        fitted = weakref.ref(model)  # kept by a map whose key it is

        def deliver(facts: Delivered) -> None:
            if (model := fitted()) is not None:
                _add(training, model, (facts,))

        return self._evaluations.fit_begins(model, validation, callback._training_inputs, deliver, given.get("x"))

    def _await_batches(
        self,
        training: Training,
        sampled: SampledRows | None,
        model: Any,
        data: Any,
        _evaluation: Any,
        class_weights: bool | None,
    ) -> FirstBatches:
        from diagnostics.api.walk import Walk
        from diagnostics.collectors.keras.examine.drawn_batches import Listeners, first_batches

        def examine(pipeline: Any) -> None:  # on TensorFlow a `KerasPipeline`
            later = Walk(pipeline).report()
            report = later if training.examined is None else _continued(training.examined, later)
            self._trainings.examined(training, report)
            training.plain_loss = getattr(pipeline, "plain_loss", None)
            if getattr(pipeline, "scores_outputs", False):
                pipeline.rows_drawn = sampled
            self._keep(training, model, pipeline)

        def unseen(why: str) -> None:
            training.examined = training.examined or not_examined(model, why)

        listeners = Listeners(examine, training.extend, unseen, self._trainings.fault)
        return first_batches(model, data, class_weights, listeners)


def _given_to_fit(
    model: Any,
    x: Any = None,
    y: Any = None,
    *others: Any,
    validation_data: Any = None,
    class_weight: Any = None,
    sample_weight: Any = None,
    **_: Any,
) -> tuple[Any, Any, Any, bool | None]:
    """Return model, data, evaluation data, and whether there are class weights, from the arguments of `fit`."""
    data = x if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)
    class_weights = True if class_weight else None if others else False  # who knows what was given by place
    return model, data, validation_data, class_weights


def _add(training: Training, model: Any, facts: tuple[Any, ...]) -> None:
    """Add facts to the report of an examined training, together with its model."""
    from diagnostics.collectors.keras.model import describe_model

    if facts and training.examined is not None:
        training.extend((*facts, describe_model(model)))


def _batch_source(data: Any) -> BatchSource | None:
    import keras

    if keras.backend.backend() != "tensorflow":
        return None
    from diagnostics.collectors.keras.replayable import batch_source

    return batch_source(data)


def _sampled_rows() -> SampledRows | None:
    import keras

    if keras.backend.backend() != "tensorflow":
        return None
    from diagnostics.collectors.keras.watch.sampled_rows import SampledRows

    return SampledRows()


def _keep_drawn(training: Training, callback: KerasCallback) -> None:
    """Keep rows that the training has drawn, where none could be read before it."""
    if training.rows is None and callback._sampled_rows is not None and training.plain_loss is not None:
        training.rows = callback._sampled_rows.rows(*training.plain_loss)


def _history(callback: KerasCallback) -> TrainingHistory | None:
    return None if callback._run is None else callback._run.history()


def _continued(early: Report, later: Report) -> Report:
    """Join an examination that found no weights, and the one that was made once they were there."""
    known = {result.name: result for result in early.stages if result.status == "passed"}
    reported = {finding.rule for finding in early.findings}
    judged = early.judged | later.judged
    return replace(
        later,
        findings=(*early.findings, *(finding for finding in later.findings if finding.rule not in reported)),
        stages=tuple(known.get(result.name, result) for result in later.stages),
        judged=judged,
        clean=early.clean | later.clean,
        not_applicable={name: why for name, why in later.not_applicable.items() if name not in judged},
    )
