"""What `baselines` says: what the model must beat, and whether it does."""

import json

import pytest

from diagnostics.api.baselines import Baselines
from diagnostics.facts.data import Baseline, BaselineFacts

ROWS = (
    Baseline("chance", 0.25, "one of 4 classes, drawn at random"),
    Baseline("constant", 0.28, "always 2, 28% of the rows", 0.06),
    Baseline("linear", 0.9, "logistic regression on 16 numbers, penalty 0.01", 0.04),
)
FACTS = BaselineFacts("classification", "accuracy", True, ROWS, 800, 200, True, 4, ("a note",))
WORSE = (Baseline("constant", 4.0, "always the mean", 1.0), Baseline("linear", 9.0, "ridge"))
ERRORS = BaselineFacts("regression", "mean_squared_error", False, WORSE, 800, 200, False)


def test_the_text():
    assert str(Baselines(FACTS, 0.97, 0.5, 30.0)) == (
        "baselines, 4 classes: accuracy, higher is better; 800 rows to fit, 200 held out to score\n"
        "  chance          0.25  one of 4 classes, drawn at random\n"
        "  constant        0.28  always 2, 28% of the rows\n"
        "  linear           0.9  logistic regression on 16 numbers, penalty 0.01\n"
        "  the model       0.97  as given\n"
        "\n"
        "The model must beat 0.9 (linear, which 200 rows tell to ±0.04), scored on the same rows.\n"
        "It does: 0.97.\n"
        "Note: a note.\n"
        "0.5 s of the 30 s given."
    )


@pytest.mark.parametrize(
    ("score", "beaten", "said"),
    [
        (0.97, True, "It does"),
        (0.92, None, "ahead by less than"),
        (0.8, False, "does not"),
        (0.9, False, "no better"),
        (None, None, "must beat"),
    ],
)
def test_a_model_has_beaten_them_if_it_is_ahead_by_more_than_the_rows_can_tell(score, beaten, said):
    found = Baselines(FACTS, score, 0.5, 30.0)
    assert found.beaten is beaten
    assert said in str(found)


@pytest.mark.parametrize(("score", "beaten"), [(2.0, True), (3.5, None), (5.0, False)])
def test_of_errors_the_lowest_is_to_be_beaten(score, beaten):
    found = Baselines(ERRORS, score, 0.5, 30.0)
    assert (found.best.name, found.must_beat) == ("constant", 4.0)
    assert found.beaten is beaten


def test_as_json_and_html():
    found = Baselines(FACTS, None, 0.5, 30.0)
    assert json.loads(found.to_json())["must_beat"] == 0.9
    assert "<th style='text-align:left'>linear</th><td>0.9</td>" in found._repr_html_()
