"""Observes the metrics of scikit-learn that a script calls beside its trainings."""

from __future__ import annotations

import contextlib
from types import ModuleType

from diagnostics.collectors.scikit_learn.metric_calls import MetricCalls
from diagnostics.taps.sklearn import validate_parameter_constraints

from .training import Trainings


class MetricObserver:
    """Tells the latest training that was examined what the metrics got; nothing in a script that trains nothing.

    Args:
        trainings: of the script.
        at_close: takes what is to be done at the end.
    """

    def __init__(self, trainings: Trainings, at_close: contextlib.ExitStack) -> None:
        self._trainings, self._at_close = trainings, at_close
        self._calls = MetricCalls(trainings.guard.attempt)
        at_close.callback(trainings.guard.attempt, self._report)

    def find(self, _module: ModuleType) -> None:
        """Observe from now on: scikit-learn is there."""
        self._at_close.callback(validate_parameter_constraints.before.subscribe(self._calls.called))

    def _report(self) -> None:
        facts = self._calls.facts()
        examined = [training for training in self._trainings.all if training.examined is not None]
        if examined and facts:
            examined[-1].extend(facts)
