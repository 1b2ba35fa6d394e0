"""Computes the loss of each batch from what `fit` logs: a mean over the epoch so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.model import has_own_train_step
from diagnostics.collectors.keras.values import number_of

CLOSE = 1e-4  # relative: a logged loss this near a metric's mean is that mean, up to float32


class BatchLoss:
    """The loss of one batch after the other.

    Keras adds each loss, times its number of examples, to a sum in float32. The difference of two such sums is the
    loss of the batch between them, but for the rounding of the sum: at batch k of an epoch about k times 6e-8 of
    the mean loss. A `train_step` of the user's own may log something else; then that is taken as it is.

    Attributes:
        remark: how exact the losses are, in words.
        why_not: why there are none; empty if there are.
    """

    def __init__(self, model: keras.Model, current: Callable[[Any], Any]) -> None:
        """Prepare; `current` returns the value of a variable as it is now, not waited for."""
        self._model, self._current = model, current
        self._own_step = has_own_train_step(model)
        self._tracker: Any = None  # the running mean, if the logged loss is one
        self._seen = False
        self._sums = (0.0, 0.0)
        self.remark = self.why_not = ""

    def epoch_begins(self) -> None:
        """Tell that the means begin again. All before must have gone through `value`."""
        self._sums = (0.0, 0.0)

    def ask(self, logs: Any) -> Any:
        """Return, after a step, what `value` will need: tensors, not waited for; None if there is no loss."""
        logged = logs.get("loss") if isinstance(logs, dict) else None
        if not self._seen:
            self._seen = True
            self._find(logged)
        if self._tracker is None:
            return logged
        return self._current(self._tracker.total), self._current(self._tracker.count)

    def value(self, raw: Any) -> float | None:
        """Return the loss of a batch, or the mean over several taken at once; to be called in their order."""
        if raw is None:
            return None
        if not isinstance(raw, tuple):
            return float(np.asarray(raw, dtype=np.float64).mean())
        total, count = map(float, raw)
        before = self._sums if count > self._sums[1] else (0.0, 0.0)  # not more: it was reset in between
        self._sums = (total, count)
        return (total - before[0]) / (count - before[1]) if count > before[1] else None

    def _find(self, logged: Any) -> None:
        """Look for the running mean that the logged loss is."""
        for metric in self._model.metrics:
            if not isinstance(metric, keras.metrics.Mean) or metric.name != "loss" or not number_of(metric.count):
                continue
            mean = number_of(metric.total) / number_of(metric.count)
            if not self._own_step or (logged is not None and _same(mean, float(logged))):
                self._tracker = metric
                self.remark = "computed from Keras' running mean, up to its rounding"
                return
        name = type(self._model).__name__
        if logged is None:
            self.why_not = f"{name}.train_step returns no 'loss'"
        else:
            self.remark = f"as {name}.train_step returns it; whether that is a mean is not known"


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=CLOSE) or not (math.isfinite(one) or math.isfinite(other))
