"""Scores chance, a constant and a linear model on rows that were read. NumPy only."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagnostics.errors import InvalidInput, typed_message, what
from diagnostics.facts.array import Array
from diagnostics.facts.data import Baseline, BaselineFacts, Task
from diagnostics.text.join import count_of

from .linear import chosen_logistic, chosen_ridge
from .table import Features, Table, halves

DRAWS = 20  # of an answer by chance, whose scores are averaged
MANY_CLASSES = 0.2  # of the rows: so many different integers may be numbers to predict
LEAST_ROWS = 5


@dataclass(frozen=True)
class Metric:
    """A score of predictions against targets.

    Attributes:
        name: as shown.
        compute: (predictions (rows,) or (rows, outputs), targets of the same shape) to a number.
        higher_is_better: whether a larger score is better.
        by_row: returns the terms whose mean it is, (rows,); None if it is no mean.
    """

    name: str
    compute: Callable[[Array, Array], float]
    higher_is_better: bool
    by_row: Callable[[Array, Array], Array] | None = None


def _mean_of(name: str, higher: bool, by_row: Callable[[Array, Array], Array]) -> Metric:
    return Metric(name, lambda given, wanted: float(by_row(given, wanted).mean()), higher, by_row)


def _balanced(given: Array, wanted: Array) -> float:
    return float(np.mean([(given[wanted == label] == label).mean() for label in np.unique(wanted)]))


def _rows_mean(values: Array) -> Array:
    return np.asarray(values.reshape(len(values), -1).mean(1))


ACCURACY = _mean_of("accuracy", True, lambda given, wanted: (given == wanted).astype(float))
BALANCED = Metric("balanced_accuracy", _balanced, True)
SQUARED = _mean_of("mean_squared_error", False, lambda given, wanted: _rows_mean(np.square(given - wanted)))
ABSOLUTE = _mean_of("mean_absolute_error", False, lambda given, wanted: _rows_mean(np.abs(given - wanted)))
METRICS: dict[Task, dict[str, Metric]] = {
    "classification": {"accuracy": ACCURACY, "balanced_accuracy": BALANCED},
    "regression": {
        "mean_squared_error": SQUARED, "mse": SQUARED, "mean_absolute_error": ABSOLUTE, "mae": ABSOLUTE
    },
}  # fmt: skip


def metric_for(task: Task, given: Any, higher_is_better: bool | None) -> Metric:
    """Return the metric that was asked for; accuracy or mean squared error by default.

    Raises:
        InvalidInput: it is not known, or it is not said which direction is better.
    """
    known = METRICS[task]
    if given is None:
        return next(iter(known.values()))
    if isinstance(given, str):
        if given not in known:
            raise InvalidInput(
                f"baselines(metric={given!r}): for {task} it takes {', '.join(known)}, or a function of "
                "(predictions, targets) together with higher_is_better=True or False."
            )
        return known[given]
    if not callable(given):
        raise InvalidInput(f"baselines() was given {what(given)} as metric: expected a name or a function.")
    if higher_is_better is None:
        raise InvalidInput("baselines() was given a function as metric: say higher_is_better=True or False, too.")
    return Metric(getattr(given, "__name__", type(given).__name__), _checked(given), higher_is_better)


def _checked(function: Any) -> Callable[[Array, Array], float]:
    def compute(given: Array, wanted: Array) -> float:
        try:
            return float(function(given, wanted))
        except Exception as error:
            raise InvalidInput(
                f"baselines() could not compute the metric on predictions and targets of shape {given.shape}: "
                f"{typed_message(error)}"
            ) from error

    return compute


def task_of(targets: Array, asked: Task | None) -> tuple[Task, list[str]]:
    """Say what is to be predicted, by the dtype of the targets unless it is asked for, with notes on that.

    Raises:
        InvalidInput: the targets cannot be those of that task.
    """
    kind, wide = targets.dtype.kind, targets.ndim > 1 and targets.size > len(targets)
    if asked not in (None, "classification", "regression"):
        raise InvalidInput(f'baselines(task={asked!r}): expected "classification" or "regression".')
    zeros_and_ones = kind in "biuf" and bool(((targets == 0) | (targets == 1)).all())
    one_hot = wide and targets.ndim == 2 and zeros_and_ones and bool((targets.sum(1) == 1).all())
    classes = kind in "USbiu" or one_hot or (zeros_and_ones and not wide)
    task: Task = asked or ("classification" if classes else "regression")
    if task == "regression":
        if kind in "US":
            raise InvalidInput('baselines(task="regression"): the targets are strings, not numbers.')
        if not np.isfinite(targets.astype(float)).all():
            raise InvalidInput("baselines() was given targets that hold NaN or infinity.")
        return task, []
    if wide and not one_hot:
        raise InvalidInput(
            f"baselines() needs one class for each row, and was given targets of shape {targets.shape}. Score one "
            'label or one position at a time, or say task="regression".'
        )
    if kind == "f" and not one_hot and not (targets == np.round(targets)).all():
        raise InvalidInput('baselines(task="classification"): the targets are no whole numbers.')
    notes = []
    if asked is None and kind == "f" and zeros_and_ones and not one_hot:
        notes.append('the targets 0.0 and 1.0 were taken for two classes; task="regression" predicts the numbers')
    distinct = len(np.unique(targets, axis=0)) if not one_hot else 0
    if asked is None and kind in "iu" and distinct > max(20, MANY_CLASSES * len(targets)):
        notes.append(
            f'{distinct:,} different whole numbers were taken for classes; task="regression" predicts them'
        )
    return task, notes


def scored(
    table: Table,
    evaluation: Table | None,
    asked: Task | None,
    metric: Any,
    higher_is_better: bool | None,
    deadline: float,
) -> BaselineFacts:
    """Score the baselines.

    Args:
        table: the training rows.
        evaluation: the rows to score on; None: a fifth of the training rows, drawn at random.
        asked: the task; None: by the targets.
        metric: see `metric_for`.
        higher_is_better: likewise.
        deadline: of `time.monotonic`, for the linear model.

    Raises:
        InvalidInput: the targets or the metric do not fit, or there are too few rows.
    """
    task, notes = task_of(table.target(), asked)
    chosen = metric_for(task, metric, higher_is_better)
    held_out = evaluation is None
    if held_out and table.rows < LEAST_ROWS:
        raise InvalidInput(
            f"baselines() was given {count_of(table.rows, 'row')}: too few to fit on some and to score on others. "
            "Give more, or pass the rows to score on as evaluation=."
        )
    fit, held = halves(table) if held_out else (np.arange(table.rows), np.arange(0))
    other = table if evaluation is None else evaluation
    rows = held if held_out else np.arange(other.rows)
    targets, wanted = _values(table.target(), task)[fit], _values(other.target(), task)[rows]
    features = Features.learned(table, fit)
    inputs = features.matrix(table)
    given, asked_of = inputs[fit], (inputs if held_out else features.matrix(other))[rows]
    scorer = _Scorer(task, chosen, targets, wanted)
    notes += [
        f"of the {length:,} numbers of input {name!r} every {-(-length // len(table.numbers[name][0][0]))}th "
        "was used"
        for name, length in table.strided.items()
    ]
    if table.left_out:
        notes.append(f"left out, as neither numbers nor text: {', '.join(sorted(table.left_out))}")
    return BaselineFacts(
        task=task,
        metric=chosen.name,
        higher_is_better=chosen.higher_is_better,
        baselines=(
            scorer.chance(),
            scorer.constant(),
            scorer.linear(given, asked_of, features.described, deadline),
        ),
        fitted_rows=len(fit),
        scored_rows=len(rows),
        held_out=held_out,
        classes=len(scorer.classes) if task == "classification" else None,
        notes=tuple(notes),
    )


def _values(targets: Array, task: Task) -> Array:
    """Return classes (rows,), of whatever dtype, or float64 numbers (rows,) or (rows, outputs)."""
    if task == "regression":
        return targets.astype(np.float64)
    if targets.ndim == 2 and targets.shape[1] > 1:
        return np.asarray(targets.argmax(1))
    flat = targets.reshape(-1)
    return flat.astype(np.int64) if flat.dtype.kind in "fb" else flat


class _Scorer:
    """Scores one answer after the other on the same rows."""

    def __init__(self, task: Task, metric: Metric, targets: Array, wanted: Array) -> None:
        self._task, self._metric, self._targets, self._wanted = task, metric, targets, wanted
        self.classes = np.unique(targets) if task == "classification" else np.arange(0)

    def chance(self) -> Baseline:
        """Answer at random: any class, or the target of any row."""
        rng, rows = np.random.default_rng(0), len(self._wanted)
        pool = self.classes if self._task == "classification" else self._targets
        if self._metric is ACCURACY:
            score = float(np.isin(self._wanted, self.classes).mean() / len(self.classes))
        else:
            draws = (pool[rng.integers(len(pool), size=rows)] for _ in range(DRAWS))
            score = float(np.mean([self._metric.compute(drawn, self._wanted) for drawn in draws]))
        if self._task == "regression":
            return Baseline("chance", score, "the target of another row, drawn at random")
        return Baseline("chance", score, f"one of {count_of(len(pool), 'class', 'classes')}, drawn at random")

    def constant(self) -> Baseline:
        """Give every row the one answer that does best on the rows fitted on."""
        targets, compute = self._targets, self._metric.compute
        options: list[tuple[str, Any]]
        if self._task == "classification":
            labels, counts = np.unique(targets, return_counts=True)
            commonest = np.argsort(-counts, kind="stable")[: 1 if self._metric is ACCURACY else DRAWS]
            options = [
                (f"always {labels[n]}, {counts[n] / len(targets):.0%} of the rows", labels[n]) for n in commonest
            ]
        else:
            options = [("always the mean", targets.mean(0)), ("always the median", np.median(targets, axis=0))]
        sign = 1 if self._metric.higher_is_better else -1
        said, answer = max(options, key=lambda option: sign * compute(_all(option[1], targets), targets))
        return self._scored("constant", _all(answer, self._wanted), said)

    def linear(self, inputs: Array, asked_of: Array, described: str, deadline: float) -> Baseline:
        """Fit a linear model."""
        if time.monotonic() > deadline:
            return Baseline("linear", None, "not fitted: reading the rows used up the time")
        if self._task == "regression":
            wanted = self._targets.reshape(len(self._targets), -1)
            scale = wanted.std(0)
            scale = np.where(scale > 0, scale, 1.0)
            chosen = chosen_ridge(inputs, wanted / scale)
            answers = (chosen.model.scores(asked_of) * scale).reshape(self._wanted.shape)
            return self._scored("linear", answers, f"ridge regression on {described}, penalty {chosen.penalty:g}")
        indices = np.searchsorted(self.classes, self._targets)
        chosen = chosen_logistic(inputs, indices, len(self.classes), deadline)
        answers = self.classes[chosen.model.scores(asked_of).argmax(1)]
        said = f"logistic regression on {described}, penalty {chosen.penalty:g}"
        return self._scored("linear", answers, said if chosen.model.complete else f"{said}, ended by the time")

    def _scored(self, name: Any, answers: Array, detail: str) -> Baseline:
        score, margin, rows = self._metric.compute(answers, self._wanted), None, len(self._wanted)
        if self._metric.by_row is not None:
            margin = 2 * float(self._metric.by_row(answers, self._wanted).std()) / math.sqrt(rows)
            if self._metric is ACCURACY:  # of all right, three in as many rows may still be wrong (95%)
                margin = max(margin, 3 / rows)
        return Baseline(name, score, detail, margin)


def _all(answer: Any, like: Array) -> Array:
    """Return one answer for every row."""
    return np.broadcast_to(np.asarray(answer), like.shape).copy()
