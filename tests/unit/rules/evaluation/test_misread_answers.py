import dataclasses

import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import MeasuredNumbers, MeasuredScores
from diagnostics.rules.evaluation.misread_answers import MisreadAnswers

RULE = MisreadAnswers()
UNITS = MeasuredNumbers("mean_squared_error", 300, 1100.0, 150.0, 24.0, 6.0, 0.98)
FIRST = MeasuredScores("roc_auc_score", 500, 260, 0.02, 0, 2)


def test_names_answers_in_another_unit():
    finding = RULE.from_numbers(UNITS)
    assert (finding.rule, finding.severity, finding.stage) == ("misread-answers", "warning", "evaluation")
    assert finding.evidence == {
        "metric": "mean_squared_error", "rows": 300, "answers": [24.0, 6.0], "targets": [1100.0, 150.0],
        "correlation": 0.98,
    }  # fmt: skip


@pytest.mark.parametrize(
    "seen",
    [
        {"correlation": 0.3},
        {"answer_mean": 1050.0},  # of a model that hardly follows its targets, around their mean
        {"answer_mean": 1090.0, "answer_spread": 100.0},
        {"target_mean": 300.0, "answer_mean": 130.0, "answer_spread": 0.5},  # a series that leaves its range
    ],
    ids=["predictions of chance", "a timid model", "a good model", "a saturated model"],
)
def test_silent_on_answers_in_the_unit_of_the_targets(seen):
    assert RULE.from_numbers(dataclasses.replace(UNITS, **seen)) is None


def test_names_the_first_of_two_columns():
    finding = RULE.from_scores(FIRST)
    assert finding.severity == "warning"
    assert RULE.from_scores(dataclasses.replace(FIRST, area=0.3)).severity == "warning"


def test_notes_scores_of_unknown_origin():
    finding = RULE.from_scores(dataclasses.replace(FIRST, column=None, columns=None))
    assert finding.severity == "note"


@pytest.mark.parametrize(
    "seen",
    [{"area": 0.9}, {"area": 0.45}, {"area": 0.3, "column": None}, {"area": 0.3, "columns": 5}],
    ids=["the right column", "chance", "weak scores", "one of several classes"],
)
def test_silent_on_other_scores(seen):
    assert RULE.from_scores(dataclasses.replace(FIRST, **seen)) is None


def test_needs_rows():
    with pytest.raises(NotApplicable):
        RULE.from_numbers(dataclasses.replace(UNITS, rows=19))
    with pytest.raises(NotApplicable):
        RULE.from_scores(dataclasses.replace(FIRST, positives=0))
