"""Observes the metrics of scikit-learn that a script calls beside its trainings."""

from __future__ import annotations

import contextlib
from types import ModuleType

from diagnostics.collectors.isolation.patching import Patches
from diagnostics.collectors.scikit_learn.metric_calls import FUNCTION, MetricCalls

from .training import Trainings


class MetricObserver:
    """Tells the latest training that was examined what the metrics got; nothing in a script that trains nothing.

    Args:
        trainings: of the script.
        patches: hold the replaced function.
        at_close: takes what is to be done at the end.
    """

    def __init__(self, trainings: Trainings, patches: Patches, at_close: contextlib.ExitStack) -> None:
        self._trainings, self._patches = trainings, patches
        self._calls = MetricCalls(trainings.guard.attempt)
        at_close.callback(trainings.guard.attempt, self._report)

    def find(self, module: ModuleType) -> None:
        """Observe from now on: scikit-learn checks arguments in this module."""
        if hasattr(module, FUNCTION):
            self._patches.before(module, FUNCTION, self._calls.called)

    def _report(self) -> None:
        facts = self._calls.facts()
        examined = [training for training in self._trainings.all if training.examined is not None]
        if examined and facts:
            examined[-1].extend(facts)
