"""What chance, a constant and a linear model score, and how targets are understood."""

import time

import numpy as np
import pytest

from diagnostics.collectors.baselines.scores import METRICS, metric_for, scored, task_of
from diagnostics.collectors.baselines.table import Table
from diagnostics.errors import InvalidInput

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(500, 4))


def table(inputs, targets):
    made = Table()
    made.add({"0": inputs}, np.asarray(targets))
    return made


def scores(targets, inputs=INPUTS, evaluation=None, task=None, metric=None, higher=None, seconds=60.0):
    facts = scored(table(inputs, targets), evaluation, task, metric, higher, time.monotonic() + seconds)
    return {one.name: one.score for one in facts.baselines}, facts


class TestClassification:
    def test_a_linear_relation_is_found_and_chance_and_constant_are_what_they_are(self):
        found, facts = scores(INPUTS.argmax(1))
        assert found["chance"] == 0.25
        assert 0.15 < found["constant"] < 0.35
        assert found["linear"] > 0.85
        assert (facts.task, facts.metric, facts.classes) == ("classification", "accuracy", 4)
        assert (facts.fitted_rows, facts.scored_rows, facts.held_out) == (400, 100, True)

    def test_the_constant_is_the_commonest_class_of_the_rows_fitted_on(self):
        found, facts = scores(
            ["no"] * 90 + ["yes"] * 10, INPUTS[:100], table(INPUTS[:4], ["yes", "yes", "yes", "no"])
        )
        assert found["constant"] == 0.25
        assert facts.baselines[1].detail == "always no, 90% of the rows"

    def test_nothing_to_learn_leaves_linear_near_the_constant(self):
        found, facts = scores(RNG.integers(2, size=500))
        assert abs(found["linear"] - 0.5) < 0.2
        assert facts.baselines[2].margin == pytest.approx(0.1, abs=0.01)

    def test_one_class_only_is_scored_as_it_is(self):
        assert scores([3] * 50, INPUTS[:50])[0] == {"chance": 1.0, "constant": 1.0, "linear": 1.0}

    def test_balanced_accuracy_gives_a_constant_one_over_the_classes(self):
        labels = np.where(np.arange(500) % 10, 0, 1)
        assert scores(labels, metric="balanced_accuracy")[0]["constant"] == 0.5

    def test_a_metric_of_the_users_own(self):
        def errors(predictions, targets):
            return (predictions != targets).sum()

        found, facts = scores(INPUTS.argmax(1), metric=errors, higher=False)
        assert found["linear"] < found["constant"] <= found["chance"] + 20
        assert (facts.metric, facts.higher_is_better) == ("errors", False)

    def test_no_time_leaves_the_linear_model_out_and_says_so(self):
        found, facts = scores(INPUTS.argmax(1), seconds=-1.0)
        assert found["linear"] is None
        assert facts.baselines[2].detail == "not fitted: reading the rows used up the time"


class TestRegression:
    def test_a_linear_relation_is_found_in_the_targets_own_unit(self):
        prices = 1e5 * (INPUTS @ [1.0, 2.0, 0.0, 0.0] + 5)
        found, facts = scores(prices)
        assert found["linear"] < 1e-4 * found["constant"] < found["chance"]
        assert facts.baselines[1].detail == "always the mean"

    def test_absolute_error_is_best_answered_by_the_median(self):
        skewed = np.exp(2 * INPUTS[:, 0])
        assert scores(skewed, metric="mae")[1].baselines[1].detail == "always the median"

    def test_several_outputs(self):
        assert scores(INPUTS @ RNG.normal(size=(4, 3)))[0]["linear"] < 1e-3


class TestTaskOf:
    @pytest.mark.parametrize(
        ("targets", "task"),
        [
            (np.array([0, 1, 2]), "classification"),
            (np.array([True, False]), "classification"),
            (np.array(["a", "b"]), "classification"),
            (np.eye(3), "classification"),
            (np.array([0.0, 1.0]), "classification"),
            (np.array([0.5, 1.0]), "regression"),
            (np.array([[0.1, 0.9], [1.0, 0.0]]), "regression"),
            (np.array([[1.0, 1.0], [1.0, 0.0]]), "regression"),
        ],
    )
    def test_is_told_by_the_dtype(self, targets, task):
        assert task_of(targets, None)[0] == task

    def test_can_be_said(self):
        assert task_of(np.array([0, 1, 2]), "regression") == ("regression", [])

    def test_what_was_assumed_is_noted(self):
        (note,) = task_of(np.array([0.0, 1.0]), None)[1]
        assert note.startswith("the targets 0.0 and 1.0 were taken for two classes")
        (note,) = task_of(np.arange(100), None)[1]
        assert note.startswith("100 different whole numbers were taken for classes")

    @pytest.mark.parametrize(
        ("targets", "task", "said"),
        [
            (np.array([[1, 2], [3, 4]]), None, r"one class for each row, and was given targets of shape \(2, 2\)"),
            (np.array([0.5]), "classification", "no whole numbers"),
            (np.array(["a"]), "regression", "strings, not numbers"),
            (np.array([np.nan]), None, "NaN or infinity"),
            (np.array([1]), "ranking", 'expected "classification" or "regression"'),
        ],
    )
    def test_targets_that_do_not_fit_are_refused_in_words(self, targets, task, said):
        with pytest.raises(InvalidInput, match=said):
            task_of(targets, task)


class TestMetricFor:
    def test_the_defaults(self):
        assert metric_for("classification", None, None).name == "accuracy"
        assert metric_for("regression", None, None).name == "mean_squared_error"
        assert metric_for("regression", "mae", None) is METRICS["regression"]["mean_absolute_error"]

    @pytest.mark.parametrize(
        ("given", "said"),
        [("f1", "for classification it takes accuracy"), (3, "an int as metric"), (len, "higher_is_better")],
    )
    def test_others_are_refused_in_words(self, given, said):
        with pytest.raises(InvalidInput, match=said):
            metric_for("classification", given, None)

    def test_a_metric_that_fails_is_explained(self):
        def broken(predictions, targets):
            raise KeyError("f1")

        with pytest.raises(InvalidInput, match=r"could not compute the metric .* KeyError: 'f1'"):
            scores(INPUTS.argmax(1), metric=broken, higher=True)


def test_too_few_rows_are_refused_in_words():
    with pytest.raises(InvalidInput, match="was given 3 rows: too few to fit on some"):
        scores([0, 1, 0], INPUTS[:3])
