from dataclasses import replace

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.metrics import MetricCall, MetricLedger
from diagnostics.rules.evaluation.misread_answers import MisreadAnswers

RULE = MisreadAnswers()


def numbers(rows=300, targets=(1100.0, 150.0), answers=(24.0, 6.0), correlation=0.98):
    """Make targets and predictions of exactly these means, standard deviations and correlation."""
    one, other = np.linalg.qr(np.c_[np.ones(rows), np.random.default_rng(0).normal(size=(rows, 2))])[0][:, 1:].T
    one, other = one * np.sqrt(rows), other * np.sqrt(rows)
    mixed = correlation * one + np.sqrt(1 - correlation**2) * other
    call = MetricCall("mean_squared_error", targets[0] + targets[1] * one, answers[0] + answers[1] * mixed)
    return MetricLedger((call,))


def scores(area=0.02, column=0, columns=2, rows=500, positives=260):
    """Rank as many positives above all other rows as give this area."""
    others = rows - positives
    above, rest = divmod(round(area * positives * others), others)
    of_positives = [rows] * above + [rest + 0.5] * (above < positives) + [0.0] * (positives - above - 1)
    truth = np.r_[np.ones(positives, int), np.zeros(others, int)]
    answers = np.r_[of_positives, np.arange(1.0, others + 1)]
    return MetricLedger((MetricCall("roc_auc_score", truth, answers, column=column, columns=columns),))


def test_names_answers_in_another_unit():
    finding = RULE.from_numbers(numbers())
    assert (finding.rule, finding.severity, finding.stage) == ("misread-answers", "warning", "evaluation")
    assert finding.evidence == {
        "metric": "mean_squared_error", "rows": 300, "answers": pytest.approx([24.0, 6.0]),
        "targets": pytest.approx([1100.0, 150.0]), "correlation": pytest.approx(0.98),
    }  # fmt: skip


@pytest.mark.parametrize(
    "seen",
    [
        {"correlation": 0.3},
        {"answers": (1050.0, 6.0)},  # of a model that hardly follows its targets, around their mean
        {"answers": (1090.0, 100.0)},
        {"targets": (300.0, 150.0), "answers": (130.0, 0.5)},  # a series that leaves its range
    ],
    ids=["predictions of chance", "a timid model", "a good model", "a saturated model"],
)
def test_silent_on_answers_in_the_unit_of_the_targets(seen):
    assert RULE.from_numbers(numbers(**seen)) is None


def test_names_the_first_of_two_columns():
    finding = RULE.from_scores(scores())
    assert finding.severity == "warning"
    assert RULE.from_scores(scores(0.3)).severity == "warning"


def test_notes_scores_of_unknown_origin():
    finding = RULE.from_scores(scores(column=None, columns=None))
    assert finding.severity == "note"


@pytest.mark.parametrize(
    "seen",
    [{"area": 0.9}, {"area": 0.45}, {"area": 0.3, "column": None}, {"area": 0.3, "columns": 5}],
    ids=["the right column", "chance", "weak scores", "one of several classes"],
)
def test_silent_on_other_scores(seen):
    assert RULE.from_scores(scores(**seen)) is None


def test_needs_rows():
    with pytest.raises(NotApplicable):
        RULE.from_numbers(numbers(rows=19))
    with pytest.raises(NotApplicable):
        RULE.from_scores(scores(area=0.0, rows=49, positives=25))


def test_of_several_sets_of_rows_the_one_furthest_apart_counts():
    far, near = numbers(), numbers(rows=100, answers=(1000.0, 140.0))
    finding = RULE.from_numbers(MetricLedger((*near.calls, *far.calls, *near.calls)))
    assert finding.evidence["rows"] == 300


def test_equal_scores_count_half():
    truth = np.arange(100) % 2
    assert RULE.from_scores(MetricLedger((MetricCall("roc_auc_score", truth, np.zeros(100)),))) is None


def test_calls_of_another_kind_are_no_evidence():
    with pytest.raises(NotApplicable):
        RULE.from_numbers(scores())
    with pytest.raises(NotApplicable):
        RULE.from_scores(numbers())


@pytest.mark.parametrize(("spread", "named"), [(140.0, False), (1.0, True), (None, True)])
def test_silent_on_shrunken_predictions_if_training_had_the_same_unit(spread, named):
    ledger = replace(numbers(), trained_spread=spread)
    assert bool(RULE.from_numbers(ledger)) is named
