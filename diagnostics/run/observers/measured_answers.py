"""Observes metrics and encoders of scikit-learn, and the metrics of a Trainer."""

from __future__ import annotations

import contextlib
import math
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from diagnostics.collectors.preprocessing_fits import EncoderFits, ScalerRecorder
from diagnostics.collectors.scikit_learn import MODULE as METRICS
from diagnostics.collectors.scikit_learn import MetricCalls
from diagnostics.facts.course import TargetHistory
from diagnostics.facts.metrics import MetricLedger
from diagnostics.facts.pipeline import LossFacts
from diagnostics.report.report import Report
from diagnostics.taps import sklearn, transformers
from diagnostics.taps.tap import subscribe

from .training import Training, Trainings

if TYPE_CHECKING:
    from diagnostics.collectors.pytorch.evaluated_outputs import EvaluatedOutputs
    from diagnostics.collectors.transformers.evaluations import TrainerEvaluations


class MetricObserver:
    """Tells the latest training that was examined what was reported; nothing in a script that trains nothing.

    Args:
        trainings: of the script.
        at_close: takes what is to be done at the end.
    """

    def __init__(self, trainings: Trainings, at_close: contextlib.ExitStack) -> None:
        self._trainings, self._at_close = trainings, at_close
        self._outputs: EvaluatedOutputs | None = None
        self._calls = MetricCalls(trainings.guard.attempt, lambda: self._outputs)
        self._evaluations: TrainerEvaluations | None = None
        self._encoders = EncoderFits(trainings.guard.attempt, lambda: len(trainings.all))
        self._scalers = ScalerRecorder(trainings.guard.attempt)
        at_close.callback(trainings.guard.attempt, self._report)

    def find(self, _module: ModuleType) -> None:
        """Observe from now on: scikit-learn is there."""
        self._at_close.callback(sklearn.validate_parameter_constraints.before.subscribe(self._calls.called))
        self.find_passes()

    def find_encoders(self, _module: ModuleType) -> None:
        """Observe the encoders and scalers of scikit-learn, which are there."""
        self._at_close.callback(self._encoders.listen())
        self._at_close.callback(self._scalers.listen())

    def find_vectorizers(self, _module: ModuleType) -> None:
        """Observe the text vectorizers of Keras, which are there."""
        self._at_close.callback(self._encoders.listen_to_keras())

    def find_trainers(self) -> None:
        """Observe the evaluations of a Trainer, too."""
        from diagnostics.collectors.transformers.evaluations import TrainerEvaluations

        self._evaluations = TrainerEvaluations()
        work = self._evaluations.ended
        self._at_close.callback(
            subscribe(self._trainings.guard.attempt, (transformers.evaluation_loop.after, work))
        )

    def find_passes(self) -> None:
        """Observe what models return without gradients, once PyTorch and scikit-learn are there."""
        if self._outputs is None and METRICS in sys.modules and hasattr(sys.modules.get("torch"), "nn"):
            from diagnostics.collectors.pytorch.evaluated_outputs import EvaluatedOutputs

            self._outputs = EvaluatedOutputs(self._trainings.guard)
            self._at_close.callback(self._outputs.close)

    def _report(self) -> None:
        evaluations = () if self._evaluations is None else self._evaluations.latest
        calls, series = self._calls.calls, self._calls.series
        examined = [training for training in self._trainings.all if training.examined is not None]
        if examined and (calls or series or evaluations):
            known = examined[-1].examined.facts if examined[-1].examined is not None else ()
            reads = next((fact.reads for fact in known if isinstance(fact, LossFacts)), None)
            examined[-1].extend(
                (MetricLedger(calls, series, evaluations, reads, _spread(self._trainings, examined[-1])),)
            )
        if examined:
            for refitted in self._encoders.facts():
                examined[-1].extend((refitted,))
        if (scalers := self._scalers.facts()) is not None:
            for training in self._trainings.all:
                training.extend((scalers,))
                training.with_course = (scalers,)


def _spread(trainings: Trainings, training: Training) -> float | None:
    """Return the standard deviation of a training's targets, if its loss is the squared error of one number."""
    report: Report | None = None
    if training.watching is not None:
        report = trainings.guard.attempt(training.watching._report)
    known = () if report is None else (fact for fact in report.facts if isinstance(fact, TargetHistory))
    targets = next(iter(known), None)
    if targets is None or targets.kind != "mean_squared_error" or targets.outputs != 1:
        return None
    return math.sqrt(max(0.0, float(targets.constant_losses.mean())))
