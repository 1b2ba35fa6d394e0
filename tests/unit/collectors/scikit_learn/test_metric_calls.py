"""What a script gives to metrics of scikit-learn is copied, and not changed."""

import numpy as np
import pytest
from sklearn import metrics

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.scikit_learn import MetricCalls
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
    yield calls
    unsubscribe()
    assert faults == []


def test_columns_are_flattened(seen):
    assert metrics.mean_absolute_error(TRUE.reshape(-1, 1), (TRUE / 25).reshape(-1, 1)) > 900
    (call,) = seen.calls
    assert (call.metric, call.whole) == ("mean_absolute_error", True)
    assert (call.truth == TRUE).all()
    assert (call.answers == TRUE / 25).all()


def test_of_the_same_rows_the_last_call_counts(seen):
    """In the first epochs a model's answers follow the targets, and are far too small."""
    for factor in np.linspace(0.01, 1, 100):
        metrics.r2_score(TRUE, factor * TRUE)
    metrics.roc_auc_score(CLASSES, ANSWERS[:, 0])
    metrics.roc_auc_score(CLASSES, ANSWERS[:, 1])
    numbers, scores = seen.calls
    assert (numbers.answers == TRUE).all()
    assert scores.column == 1


def test_many_rows_are_thinned_out(seen):
    many = np.tile(TRUE, 500)
    metrics.mean_squared_error(many, many / 25)
    (call,) = seen.calls
    assert (len(call.truth), call.whole) == (20_000, False)


@pytest.mark.parametrize("column", [0, 1])
def test_scores_tell_their_column(seen, column):
    metrics.roc_auc_score(CLASSES, ANSWERS[:, column])
    (call,) = seen.calls
    assert (call.column, call.columns) == (column, 2)


def test_copied_scores_have_no_column(seen):
    metrics.roc_auc_score(CLASSES, np.round(ANSWERS[:, 0] + RNG.normal(size=200)))
    assert seen.calls[0].column is None


def test_lists_of_numbers_are_read(seen):
    metrics.mean_squared_error(list(TRUE), TRUE.tolist())
    assert (seen.calls[0].truth == TRUE).all()


def test_tensors_are_read(seen):
    torch = pytest.importorskip("torch")
    truth = torch.tensor(CLASSES)
    metrics.f1_score(truth, truth.bool())
    assert (seen.calls[0].truth == CLASSES).all()
    assert seen.calls[0].answers.dtype == bool


def test_what_is_no_column_of_numbers_is_left(seen):
    metrics.mean_squared_error(TRUE.reshape(-1, 2), TRUE.reshape(-1, 2))
    metrics.mean_squared_error(TRUE, TRUE / 25, sample_weight=np.ones(200))
    metrics.accuracy_score(["a", "b"], ["a", "a"])
    metrics.balanced_accuracy_score(CLASSES, CLASSES)
    assert seen.calls == ()


def test_few_rows_are_kept_only_in_a_series(seen):
    for start in range(0, 40, 8):
        metrics.f1_score(CLASSES[start : start + 8], CLASSES[start : start + 8], average="macro")
    assert seen.calls == ()
    ((first, *others),) = seen.series
    assert (first.average, first.where.function, len(others)) == (
        "macro",
        "test_few_rows_are_kept_only_in_a_series",
        4,
    )


def test_average_of_chosen_labels_is_not_followed(seen):
    metrics.f1_score(CLASSES, CLASSES, pos_label=0)
    metrics.recall_score(CLASSES, CLASSES)
    assert [call.average for call in seen.calls] == [None, "binary"]


def test_pairs_of_the_positive_rows_are_found(seen):
    torch = pytest.importorskip("torch")
    edges, others = torch.arange(200).reshape(2, 100), torch.arange(198).reshape(99, 2)
    metrics.roc_auc_score(CLASSES, ANSWERS[:, 1])
    metrics.accuracy_score(CLASSES, CLASSES)
    scores, classes = seen.calls
    assert any(np.array_equal(pairs, edges.T) for pairs in scores.pairs)
    assert all(pairs.shape == (100, 2) for pairs in scores.pairs)
    assert classes.pairs == ()
    del others
