import math

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, LossFacts
from diagnostics.facts.trials import OverfitFacts
from diagnostics.rules.model.ignores_input import IgnoresInput

BATCH = BatchFacts(8, {}, np.array([0, 1, 2, 0, 1, 2, 0, 1]))
STALLED = (1.2, 1.1, 1.09)


class TestFires:
    @pytest.mark.parametrize("spread", [0.0, 3e-7])
    def test_when_all_answers_are_equal_up_to_rounding(self, spread):
        overfit = OverfitFacts(STALLED, (1e-3,), 8, spread)
        finding = IgnoresInput().from_overfit(overfit, LossFacts(1.2, "cross_entropy", 1.08), BATCH)
        assert (finding.rule, finding.severity, finding.stage) == ("ignores-input", "error", "model")
        assert finding.message == (
            "A copy of the model predicts the same for all 8 different inputs of this batch, both before "
            "and after 3 steps of training on it. The input does not reach the output, so training can "
            "only find the best constant prediction. Look for an input that forward() never uses, a mask "
            "or factor that is all zero, a softmax or normalisation over an axis of size 1, or a layer "
            "whose units are all dead."
        )
        assert finding.fix == (
            "after each layer, print x.std(0).max(), the spread of its output across the batch: the "
            "first layer where it is 0 is at fault"
        )
        assert finding.evidence == {"output_spread": spread, "distinct_inputs": 8, "steps": 3}

    def test_without_knowing_loss_and_labels(self):
        finding = IgnoresInput().from_overfit(OverfitFacts((1.0,), (1e-3,), 2, 0.0))
        assert "the same for all 2 different inputs of this batch, both before and after 1 step" in finding.message

    def test_for_regression_targets_that_differ(self):
        batch = BatchFacts(2, {}, np.array([0.5, 0.7]))
        assert IgnoresInput().from_overfit(OverfitFacts((1.0,), (1e-3,), 2, 0.0), batch=batch) is not None


class TestStaysSilent:
    @pytest.mark.parametrize("spread", [1e-6, 1e-3, 1.4])
    def test_when_answers_differ(self, spread):
        assert IgnoresInput().from_overfit(OverfitFacts(STALLED, (1e-3,), 8, spread)) is None

    def test_when_the_loss_fell_below_what_any_single_answer_reaches(self):
        overfit = OverfitFacts((1.2, 0.9, 0.8), (1e-3, 1e-2), 8, 0.0)
        assert IgnoresInput().from_overfit(overfit, LossFacts(1.2, "cross_entropy", 1.08), BATCH) is None


class TestNotApplicable:
    def test_to_a_batch_of_one_input(self):
        with pytest.raises(NotApplicable, match="needs a batch in which at least two inputs differ"):
            IgnoresInput().from_overfit(OverfitFacts(STALLED, (1e-3,), 1, 0.0))

    @pytest.mark.parametrize(
        "labels",
        [np.array([1, 1]), np.array([[1, -100], [-100, 1]]), np.array([0.5, 0.5]), np.array([[1, 2], [1, 2]])],
    )
    def test_to_a_batch_whose_examples_want_the_same_answer(self, labels):
        batch = BatchFacts(2, {}, labels, ignore_index=-100)
        with pytest.raises(NotApplicable, match="needs a batch in which at least two labels differ"):
            IgnoresInput().from_overfit(OverfitFacts(STALLED, (1e-3,), 2, 0.0), batch=batch)

    @pytest.mark.parametrize("spread", [None, math.nan])
    def test_without_finite_predictions(self, spread):
        with pytest.raises(NotApplicable, match="needs finite predictions of the trained copy"):
            IgnoresInput().from_overfit(OverfitFacts(STALLED, (1e-3,), 8, spread))
