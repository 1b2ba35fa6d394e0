"""Takes what a script gives to scikit-learn's metrics, as they check their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.calls import MeasuredNumbers, MeasuredScores

MODULE, FUNCTION = "sklearn.utils._param_validation", "validate_parameter_constraints"
NUMBERS = (
    "mean_squared_error",
    "root_mean_squared_error",
    "mean_absolute_error",
    "median_absolute_error",
    "explained_variance_score",
    "r2_score",
)
SCORES = ("roc_auc_score", "average_precision_score")
CALLS = 64  # that are looked at; a script may measure each of thousands of steps
LEAST, MOST = 16, 1_000_000  # rows

Measured = MeasuredNumbers | MeasuredScores


class MetricCalls:
    """Describes the calls of a script's own.

    Args:
        attempt: runs the work, and keeps its faults out of the script.

    """

    def __init__(self, attempt: Callable[..., Any]) -> None:
        self._attempt, self._calls = attempt, 0
        self._numbers: MeasuredNumbers | None = None  # those that are furthest from each other's unit
        self._scores: MeasuredScores | None = None  # those of the smallest area

    def facts(self) -> tuple[Measured, ...]:
        """Return one call of each kind, the most suspicious."""
        return tuple(fact for fact in (self._numbers, self._scores) if fact is not None)

    def called(self, _constraints: Any, params: Any, caller_name: Any, *_others: Any, **_options: Any) -> None:
        """Take the arguments of a call of scikit-learn, before they are checked."""
        if caller_name in NUMBERS or caller_name in SCORES:
            self._attempt(self._take, caller_name, params)

    def _take(self, metric: str, params: Mapping[str, Any]) -> None:
        self._calls += 1
        if self._calls > CALLS or params.get("sample_weight") is not None:
            return
        truth = _column(params["y_true"])
        answers = _column(params["y_score" if metric in SCORES else "y_pred"])
        if truth is None or answers is None or len(truth) != len(answers) or not LEAST <= len(truth) <= MOST:
            return
        if metric in NUMBERS:
            numbers = _numbers(metric, truth, answers)
            self._numbers = max((one for one in (self._numbers, numbers) if one), key=_apart, default=None)
        else:
            scores = _scores(metric, truth, answers)
            self._scores = min((one for one in (self._scores, scores) if one), key=_area, default=None)


def _apart(numbers: MeasuredNumbers) -> float:
    """Order calls by how far the units are apart, as far as both sides follow each other."""
    return max(numbers.correlation, 0.0) * abs(math.log(numbers.answer_spread / numbers.target_spread))


def _area(scores: MeasuredScores) -> float:
    return scores.area


def _column(given: Any) -> Array | None:
    """Return an array (n,) of finite numbers, a view if possible; None for anything else.

    Only arrays are read, and columns of a table, which are arrays underneath: to read what else there is may do
    something.
    """
    if type(given).__module__.startswith("pandas."):
        given = getattr(given, "values", None)
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "biuf":
        return None
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    return given if given.ndim == 1 and bool(np.isfinite(given).all()) else None


def _numbers(metric: str, truth: Array, answers: Array) -> MeasuredNumbers | None:
    one, other = truth.astype(np.float64), answers.astype(np.float64)
    if not one.std() > 0 or not other.std() > 0:
        return None
    correlation = float(np.corrcoef(one, other)[0, 1])
    return MeasuredNumbers(
        metric, len(one), float(one.mean()), float(one.std()), float(other.mean()), float(other.std()), correlation
    )


def _scores(metric: str, truth: Array, answers: Array) -> MeasuredScores | None:
    classes = np.unique(truth)
    if len(classes) != 2:
        return None
    positive = truth == classes[1]
    positives, rows = int(positive.sum()), len(truth)
    _, places, counts = np.unique(answers, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # equal scores share the mean of their ranks
    above = float(ranks[positive].sum()) - positives * (positives + 1) / 2
    column, columns = _cut_from(answers)
    return MeasuredScores(metric, rows, positives, above / (positives * (rows - positives)), column, columns)


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
