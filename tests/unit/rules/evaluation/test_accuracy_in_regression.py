import dataclasses

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import NumberedFit, SimpleFit, TargetHistory
from diagnostics.facts.pipeline import BatchFacts, LossFacts
from diagnostics.rules.evaluation.accuracy_in_regression import AccuracyInRegression

RULE = AccuracyInRegression()
PRICES = np.linspace(0.6, 8.3, 32, dtype="float32").reshape(-1, 1)


def judged(labels=PRICES, kind="mean_squared_error", accuracy=True):
    return RULE.from_batch(BatchFacts(32, {}, labels), LossFacts(3.0, kind, accuracy=accuracy))


def test_names_an_accuracy_of_prices():
    finding = judged()
    assert (finding.rule, finding.severity) == ("accuracy-in-regression", "warning")
    assert finding.evidence == {"fractions": 32, "targets": 32}


@pytest.mark.parametrize(
    "labels",
    [np.arange(32), np.arange(32) % 2.0, 0.9 * (np.arange(32) % 2) + 0.05],
    ids=["counts", "classes", "smoothed"],
)
def test_is_silent_on_whole_numbers(labels):
    assert judged(labels) is None


def test_is_silent_without_an_accuracy():
    assert judged(accuracy=False) is None


@pytest.mark.parametrize(
    "given", [{"kind": "cross_entropy"}, {"accuracy": None}, {"labels": None}, {"labels": np.ones((32, 4)) / 3}]
)
def test_needs_one_target_a_row_and_known_metrics(given):
    with pytest.raises(NotApplicable):
        judged(**given)


def numbered(wrong=0.2, rounded=0.8, as_good=30, loss=5.0, classes=10):
    fit = SimpleFit(190, 190, 0.9, wrong, linear=False, of_classes=True)
    steps = np.arange(8)
    history = TargetHistory("mean_squared_error", steps, np.full(8, loss), np.full(8, 8.0), 380, 1)
    return dataclasses.replace(history, numbered=NumberedFit(classes, fit, rounded, 50, as_good))


class TestClassNumbers:
    def test_names_numbers_whose_order_means_nothing(self):
        finding = RULE.from_course(numbered())
        assert (finding.rule, finding.severity) == ("accuracy-in-regression", "warning")
        assert (finding.evidence["classes"], finding.evidence["as_good"]) == (10, 30)

    @pytest.mark.parametrize(
        "given",
        [{"as_good": 2}, {"rounded": 0.3}, {"wrong": 0.8, "rounded": 0.97}, {"loss": 0.2}],
        ids=["in order", "predicted as numbers", "not learnable", "learned all the same"],
    )
    def test_is_silent_on(self, given):
        assert RULE.from_course(numbered(**given)) is None

    def test_needs_a_few_whole_numbers(self):
        with pytest.raises(NotApplicable):
            RULE.from_course(dataclasses.replace(numbered(), numbered=None))
