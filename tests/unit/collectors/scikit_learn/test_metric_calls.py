"""What a script gives to metrics of scikit-learn is described, and not changed."""

import numpy as np
import pytest
from sklearn import metrics

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.scikit_learn.metric_calls import MetricCalls
from diagnostics.taps.sklearn import validate_parameter_constraints

RNG = np.random.default_rng(0)
TRUE = 1100 + 150 * RNG.normal(size=200)
CLASSES = np.arange(200) % 2
ANSWERS = np.stack([1 - 0.8 * CLASSES, 0.8 * CLASSES], axis=1)


@pytest.fixture
def seen():
    faults = []
    calls = MetricCalls(FaultGuard(on_fault=faults.append).attempt)
    unsubscribe = validate_parameter_constraints.before.subscribe(calls.called)
    yield calls.facts
    unsubscribe()
    assert faults == []


def test_a_regression_is_described(seen):
    assert metrics.mean_absolute_error(TRUE.reshape(-1, 1), (TRUE / 25).reshape(-1, 1)) > 900
    (numbers,) = seen()
    assert (numbers.metric, numbers.rows) == ("mean_absolute_error", 200)
    assert numbers.target_spread == pytest.approx(25 * numbers.answer_spread)
    assert numbers.correlation == pytest.approx(1)


def test_of_several_sets_of_rows_the_one_furthest_apart_counts(seen):
    for factor, rows in ((1, 200), (0.02, 100), (0.9, 50)):
        metrics.r2_score(TRUE[:rows], factor * TRUE[:rows])
    (numbers,) = seen()
    assert numbers.answer_mean == pytest.approx(0.02 * TRUE[:100].mean())


def test_of_the_same_rows_the_last_call_counts(seen):
    """In the first epochs a model's answers follow the targets, and are far too small."""
    for factor in np.linspace(0.01, 1, 100):
        metrics.r2_score(TRUE, factor * TRUE)
    metrics.roc_auc_score(CLASSES, ANSWERS[:, 0])
    metrics.roc_auc_score(CLASSES, ANSWERS[:, 1])
    numbers, scores = seen()
    assert numbers.answer_mean == pytest.approx(TRUE.mean())
    assert scores.area == 1


def test_many_rows_are_thinned_out(seen):
    many = np.tile(TRUE, 500)
    metrics.mean_squared_error(many, many / 25)
    (numbers,) = seen()
    assert numbers.rows == 20_000
    assert numbers.correlation == pytest.approx(1)


@pytest.mark.parametrize("column", [0, 1])
def test_scores_tell_their_column(seen, column):
    area = metrics.roc_auc_score(CLASSES, ANSWERS[:, column])
    (scores,) = seen()
    assert (scores.column, scores.columns, scores.positives) == (column, 2, 100)
    assert scores.area == pytest.approx(area)


def test_equal_scores_count_half(seen):
    area = metrics.roc_auc_score(CLASSES, np.round(ANSWERS[:, 0] + RNG.normal(size=200)))
    (scores,) = seen()
    assert scores.area == pytest.approx(area)
    assert scores.column is None


def test_what_is_no_column_of_numbers_is_left(seen):
    metrics.mean_squared_error(TRUE.reshape(-1, 2), TRUE.reshape(-1, 2))
    metrics.mean_squared_error(list(TRUE), list(TRUE))
    metrics.mean_squared_error(TRUE, np.full(200, 3.0))
    metrics.mean_squared_error(TRUE[:5], TRUE[:5])
    metrics.mean_squared_error(TRUE, TRUE / 25, sample_weight=np.ones(200))
    metrics.accuracy_score(CLASSES, CLASSES)
    assert seen() == ()
