"""Takes what a script gives to scikit-learn's metrics, as they check their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.calls import MeasuredNumbers, MeasuredScores

MODULE = "sklearn.utils._param_validation"
NUMBERS = (
    "mean_squared_error",
    "root_mean_squared_error",
    "mean_absolute_error",
    "median_absolute_error",
    "explained_variance_score",
    "r2_score",
)
SCORES = ("roc_auc_score", "average_precision_score")
PLACES = 16  # metrics, each of so many rows, of which a call is kept
MIN_ROWS, MAX_ROWS = 16, 20_000  # rows; of more, every second, third, ... is kept

Measured = MeasuredNumbers | MeasuredScores


@dataclass(frozen=True)
class _Call:
    metric: str
    truth: Array
    answers: Array
    column: int | None
    columns: int | None


class MetricCalls:
    """Describes the calls of a script's own.

    Of calls of one metric with as many rows the last counts: a loop that measures in each epoch begins with a
    model that has yet to learn the size of its answers.

    Args:
        attempt: runs the work, and keeps its faults out of the script.
    """

    def __init__(self, attempt: Callable[..., Any]) -> None:
        self._attempt = attempt
        self._kept: dict[tuple[str, int], _Call] = {}

    def facts(self) -> tuple[Measured, ...]:
        """Return a call of each kind: the numbers furthest from each other's unit, the scores of smallest area."""
        calls = self._kept.values()
        numbers = [fact for call in calls if call.metric in NUMBERS and (fact := _numbers(call))]
        scores = [area for call in calls if call.metric in SCORES and (area := _scores(call))]
        return (*sorted(numbers, key=_apart)[-1:], *sorted(scores, key=_area)[:1])

    def called(self, _constraints: Any, params: Any, caller_name: Any, *_others: Any, **_options: Any) -> None:
        """Take the arguments of a call of scikit-learn, before they are checked."""
        if caller_name in NUMBERS or caller_name in SCORES:
            self._attempt(self._take, caller_name, params)

    def _take(self, metric: str, params: Mapping[str, Any]) -> None:
        if params.get("sample_weight") is not None:
            return
        truth = _column(params["y_true"])
        answers = _column(params["y_score" if metric in SCORES else "y_pred"])
        if truth is None or answers is None or len(truth) != len(answers) or len(truth) < MIN_ROWS:
            return
        place = metric, len(truth)
        if place not in self._kept and len(self._kept) >= PLACES:
            return
        stride = -(-len(truth) // MAX_ROWS)
        column, columns = _cut_from(answers)
        self._kept[place] = _Call(metric, truth[::stride].copy(), answers[::stride].copy(), column, columns)


def _apart(numbers: MeasuredNumbers) -> float:
    """Order calls by how far the units are apart, as far as both sides follow each other."""
    return max(numbers.correlation, 0.0) * abs(math.log(numbers.answer_spread / numbers.target_spread))


def _area(scores: MeasuredScores) -> float:
    return scores.area


def _column(given: Any) -> Array | None:
    """Return an array (n,) of numbers, a view if possible; None for anything else.

    Only arrays are read, and columns of a table, which are arrays underneath: to read what else there is may do
    something.
    """
    if type(given).__module__.startswith("pandas."):
        given = getattr(given, "values", None)
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "biuf":
        return None
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    return given if given.ndim == 1 else None


def _numbers(call: _Call) -> MeasuredNumbers | None:
    one, other = call.truth.astype(np.float64), call.answers.astype(np.float64)
    if not np.isfinite(one).all() or not np.isfinite(other).all() or not one.std() > 0 or not other.std() > 0:
        return None
    correlation = float(np.corrcoef(one, other)[0, 1])
    means_and_spreads = float(one.mean()), float(one.std()), float(other.mean()), float(other.std())
    return MeasuredNumbers(call.metric, len(one), *means_and_spreads, correlation)


def _scores(call: _Call) -> MeasuredScores | None:
    classes = np.unique(call.truth)
    if len(classes) != 2 or not np.isfinite(call.answers).all():
        return None
    positive = call.truth == classes[1]
    positives, rows = int(positive.sum()), len(positive)
    _, places, counts = np.unique(call.answers, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # equal scores share the mean of their ranks
    above = float(ranks[positive].sum()) - positives * (positives + 1) / 2
    area = above / (positives * (rows - positives))
    return MeasuredScores(call.metric, rows, positives, area, call.column, call.columns)


def _cut_from(answers: Array) -> tuple[int | None, int | None]:
    """Return which column of which table (n, k) an array (n,) is a view of."""
    whole = answers.base
    while isinstance(whole, np.ndarray) and whole.ndim != 2 and isinstance(whole.base, np.ndarray):
        whole = whole.base
    if not isinstance(whole, np.ndarray) or whole.ndim != 2 or not whole.flags.c_contiguous:
        return None, None
    columns = whole.shape[1]
    if columns < 2 or answers.strides != (whole.strides[0],) or answers.dtype != whole.dtype:
        return None, None
    offset = answers.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return int(offset % whole.strides[0] // whole.itemsize), int(columns)
