"""See `MisreadAnswers`."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.metrics import OF_NUMBERS, OF_SCORES, MetricCall, MetricLedger

ROWS = 20  # in a regression
CORRELATED = 0.7  # predictions with the targets
ONE_UNIT = 2.0  # factor between the standard deviations of targets, in training and in the metric
SPREAD, SIZE = 10.0, 5.0  # factors by which two units differ; the size is |mean| + 2 standard deviations
RANKED = 50  # rows of two classes
ERRORS = 5.0  # standard errors of the area under the curve, below one half
TURNED = 0.1  # area below which scores count as reversed, wherever they come from

NUMBERS_NEEDED: Final = "a regression metric that compares predictions with targets"
SCORES_NEEDED: Final = "a metric that ranks rows of two classes by score"

UNITS: Final = (
    "predictions = target_scaler.inverse_transform(predictions)  # the scaler that was fitted on the targets",
    "if the model was trained on log-transformed targets, invert the transform: np.expm1(predictions)",
    "compare predictions and targets in the unit used for training, without inverting the transform of either",
)


class _Numbers(NamedTuple):
    """Means and standard deviations of targets and predictions, and their correlation."""

    metric: str
    rows: int
    target_mean: float
    target_spread: float
    answer_mean: float
    answer_spread: float
    correlation: float


class _Scores(NamedTuple):
    """The area under the ROC curve, and the column that the scores come from, if known."""

    metric: str
    rows: int
    positives: int
    area: float
    column: int | None
    columns: int | None


class MisreadAnswers(Rule):
    """A metric receives predictions in a different unit from the targets, or scores for the wrong class.

    ## What it does
    Under `diagnose run`, the rule checks what a training script passes to scikit-learn's metrics. It looks for
    regression predictions that correlate with the targets but have a different scale, and for scores that rank two
    classes the wrong way round.

    ## Why it is bad
    Even if the model is good, the reported error merely reflects a difference in units. Usually the predictions
    were not converted back, were converted back with the scaler for the inputs, or are still logarithms. If there
    are two columns of scores, the first column belongs to class 0 and ranks the rows backwards: an area under the
    ROC curve of 0.95 becomes 0.05.

    ## Example
    ```python
    prices = x_scaler.inverse_transform(model.predict(x_test))
    print(mean_absolute_error(y_scaler.inverse_transform(y_test), prices))
    ```

    ## Instead
    ```python
    prices = y_scaler.inverse_transform(model.predict(x_test))
    print(mean_absolute_error(y_scaler.inverse_transform(y_test), prices))
    ```

    ## Thresholds
    For regression, there must be at least 20 rows, and the predictions must have a correlation of at least 0.7
    with the targets. The standard deviations of predictions and targets must differ by at least a factor of 10,
    and their sizes (the absolute mean plus two standard deviations) by at least a factor of 5. Predictions with
    too small a spread are not reported if the training targets and the metric's targets have the same standard
    deviation, to within a factor of 2: the unit is the same, and the model has learned too little.

    For scores, there must be at least 50 rows. If the scores are the first of two columns of predictions, the area
    under the ROC curve must be at least five standard errors below 0.5. If the rule does not know which column the
    scores come from, the area must be below 0.1, and the finding is a note.

    ## Known problems
    Metrics computed by hand or by another library are missed. So are predictions stored in a DataFrame, and scores
    computed from a column of the predictions. An adversarial attack that flips every prediction is reported as a
    note.

    ## Sources
    scikit-learn's documentation for `roc_auc_score` ("the probability of the class with the greater label") and
    `TransformedTargetRegressor`; public questions about enormous errors after `inverse_transform`.
    """

    severity = "warning"

    @check
    def from_numbers(self, ledger: MetricLedger) -> Finding | None:
        """Look for predictions that are right up to their unit."""
        measured = [one for call in ledger.calls if call.metric in OF_NUMBERS and (one := _numbers(call))]
        if not measured:
            raise NotApplicable(f"needs {NUMBERS_NEEDED}")
        return self._of_numbers(max(measured, key=_apart), ledger.trained_spread)

    @check
    def from_scores(self, ledger: MetricLedger) -> Finding | None:
        """Look for scores that rank the classes the wrong way round."""
        measured = [one for call in ledger.calls if call.metric in OF_SCORES and (one := _scores(call))]
        if not measured:
            raise NotApplicable(f"needs {SCORES_NEEDED}")
        return self._of_scores(min(measured, key=lambda one: one.area))

    def _of_numbers(self, measured: _Numbers, trained_spread: float | None) -> Finding | None:
        if measured.rows < ROWS:
            raise NotApplicable(f"needs at least {ROWS} rows")
        spread = measured.answer_spread / measured.target_spread
        answers = abs(measured.answer_mean) + 2 * measured.answer_spread
        targets = abs(measured.target_mean) + 2 * measured.target_spread
        if measured.correlation < CORRELATED or not (_far(spread, SPREAD) and _far(answers / targets, SIZE)):
            return None
        if spread < 1 and trained_spread and not _far(measured.target_spread / trained_spread, ONE_UNIT):
            return None  # the model's own answers, which are too close to the mean
        times = f"{max(spread, 1 / spread):,.3g} times {'larger' if spread > 1 else 'smaller'}"
        return self.found(
            f"{measured.metric} compares predictions of {measured.answer_mean:.4g} ± "
            f"{measured.answer_spread:.3g} with targets of {measured.target_mean:.4g} ± "
            f"{measured.target_spread:.3g}. Their correlation is {measured.correlation:.2f} over "
            f"{measured.rows:,} rows, but the standard deviation of the predictions is {times} than that of the "
            "targets, so the two are in different units. The metric measures the difference between the units, "
            "not the error of the model.",
            fix=UNITS,
            evidence={
                "metric": measured.metric,
                "rows": measured.rows,
                "answers": [measured.answer_mean, measured.answer_spread],
                "targets": [measured.target_mean, measured.target_spread],
                "correlation": measured.correlation,
            },
        )

    def _of_scores(self, measured: _Scores) -> Finding | None:
        others = measured.rows - measured.positives
        if measured.rows < RANKED or not measured.positives or not others:
            raise NotApplicable(f"needs at least {RANKED} rows of two classes")
        error = math.sqrt((measured.rows + 1) / (12 * measured.positives * others))
        first_of_two = measured.column == 0 and measured.columns == 2
        if measured.area + ERRORS * error > 0.5 or not (first_of_two or measured.area < TURNED):
            return None
        why = (
            "The scores are the probability of class 0 (the first of two columns), but the metric needs the "
            "probability of class 1 (the second)."
            if first_of_two
            else "Either the scores belong to the other class, or their sign is wrong."
        )
        return self.found(
            f"{measured.metric} ranks {measured.rows:,} rows by scores that order the classes the wrong way "
            f"round. The area under the ROC curve is {measured.area:.3g}; chance gives 0.5, and "
            f"the reversed order would give {1 - measured.area:.3g}. {why}",
            fix="scores = predictions[:, 1]  # the probability of class 1",
            evidence={
                "metric": measured.metric,
                "rows": measured.rows,
                "area": measured.area,
                "column": measured.column,
            },
            severity=None if first_of_two else "note",
        )


def _far(ratio: float, times: float) -> bool:
    return ratio >= times or ratio * times <= 1


def _numbers(call: MetricCall) -> _Numbers | None:
    one, other = call.truth.astype(np.float64), call.answers.astype(np.float64)
    if not np.isfinite(one).all() or not np.isfinite(other).all() or not one.std() > 0 or not other.std() > 0:
        return None
    correlation = float(np.corrcoef(one, other)[0, 1])
    means_and_spreads = float(one.mean()), float(one.std()), float(other.mean()), float(other.std())
    return _Numbers(call.metric, len(one), *means_and_spreads, correlation)


def _apart(numbers: _Numbers) -> float:
    """Order calls by how far the units are apart, as far as both sides follow each other."""
    return max(numbers.correlation, 0.0) * abs(math.log(numbers.answer_spread / numbers.target_spread))


def _scores(call: MetricCall) -> _Scores | None:
    classes = np.unique(call.truth)
    if len(classes) != 2 or not np.isfinite(call.answers).all():
        return None
    positive = call.truth == classes[1]
    positives, rows = int(positive.sum()), len(positive)
    _, places, counts = np.unique(call.answers, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # equal scores share the mean of their ranks
    above = float(ranks[positive].sum()) - positives * (positives + 1) / 2
    area = above / (positives * (rows - positives))
    return _Scores(call.metric, rows, positives, area, call.column, call.columns)
