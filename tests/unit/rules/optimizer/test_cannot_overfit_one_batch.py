import math

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts
from diagnostics.facts.trials import OverfitFacts
from diagnostics.rules.optimizer.cannot_overfit_one_batch import CannotOverfitOneBatch

BATCH = BatchFacts(8, {}, np.array([0, 1, 2, 0, 1, 2, 0, 1]))
FLOOR = 1.082  # nats: the entropy of those labels
LOSS = LossFacts(1.3, "cross_entropy", FLOOR)
STALLED = (1.3, 1.15) + (1.1,) * 27 + (1.097,)


def overfit(losses, distinct_inputs=8):
    return OverfitFacts(tuple(losses), (1e-3, 1e-4, 1e-2), distinct_inputs, 0.1)


class TestFires:
    def test_when_the_copy_does_no_better_than_one_answer_for_all(self):
        finding = CannotOverfitOneBatch().from_overfit(overfit(STALLED), LOSS, BATCH)
        assert (finding.rule, finding.stage) == ("cannot-overfit-one-batch", "optimizer")
        assert finding.severity == "warning"
        assert finding.evidence == {
            "lowest_loss": 1.097,
            "best_constant_loss": FLOOR,
            "examples": 8,
            "distinct_inputs": 8,
            "steps": 30,
            "learning_rates": [1e-3, 1e-4, 1e-2],
        }

    def test_when_it_gains_less_than_a_tenth(self):
        assert CannotOverfitOneBatch().from_overfit(overfit([0.98] * 30), LOSS, BATCH) is not None

    def test_on_small_regression_targets_whose_variance_is_small_too(self):
        batch = BatchFacts(4, {}, np.array([1e-4, 3e-4, 2e-4, 0.0], dtype=np.float32))
        loss = LossFacts(2e-8, "mean_squared_error", 1.25e-8)
        assert CannotOverfitOneBatch().from_overfit(overfit([1.25e-8] * 30, 4), loss, batch) is not None

    def test_names_a_learning_rate_once_that_was_tried_with_two_optimizers(self):
        twice = OverfitFacts(STALLED, (1e-3, 1e-4, 1e-3, 1e-4, 1e-2), 8, 0.1)
        assert CannotOverfitOneBatch().from_overfit(twice, LOSS, BATCH).severity == "warning"

    def test_whatever_non_finite_losses_a_run_went_through(self):
        finding = CannotOverfitOneBatch().from_overfit(overfit([*STALLED, math.nan]), LOSS, BATCH)
        assert finding.evidence["lowest_loss"] == 1.097


class TestStaysSilent:
    def test_when_the_copy_learns_the_batch(self):
        assert CannotOverfitOneBatch().from_overfit(overfit([1.3, 1.0, 0.5]), LOSS, BATCH) is None

    def test_when_a_pretrained_model_knows_it_from_the_start(self):
        assert CannotOverfitOneBatch().from_overfit(overfit([0.02]), LOSS, BATCH) is None

    def test_when_it_gains_a_tenth_and_comes_back(self):
        assert CannotOverfitOneBatch().from_overfit(overfit([1.3, 0.9, 1.3, 1.3]), LOSS, BATCH) is None

    def test_when_it_comes_near_the_entropy_of_soft_targets(self):
        grey = BatchFacts(4, {}, np.array([[0.3], [0.6], [0.4], [0.7]], dtype=np.float32))
        loss = LossFacts(0.72, "binary_cross_entropy", 0.6931)  # the targets' own entropy: 0.6420
        assert CannotOverfitOneBatch().from_overfit(overfit([0.72, 0.66, 0.643], 4), loss, grey) is None
        assert CannotOverfitOneBatch().from_overfit(overfit([0.72] + [0.693] * 29, 4), loss, grey) is not None


class TestNotApplicable:
    def test_where_all_soft_targets_are_the_same(self):
        smoothed = BatchFacts(4, {}, np.full((4, 1), 0.9, dtype=np.float32))
        loss = LossFacts(0.7, "binary_cross_entropy", 0.3251)
        with pytest.raises(NotApplicable):
            CannotOverfitOneBatch().from_overfit(overfit([0.7, 0.3251], 4), loss, smoothed)

    @pytest.mark.parametrize("loss", [LossFacts(3.0, "other", 1.0), LossFacts(3.0, "cross_entropy", None)])
    def test_where_the_best_constant_answer_is_not_known(self, loss):
        with pytest.raises(NotApplicable):
            CannotOverfitOneBatch().from_overfit(overfit(STALLED), loss, BATCH)

    @pytest.mark.parametrize(
        ("kind", "floor", "labels"),
        [
            ("cross_entropy", 0.0, np.ones(8, dtype=np.int64)),
            ("binary_cross_entropy", 3e-11, np.ones(8)),
            ("mean_squared_error", 1e-5, np.full(8, 1e5)),
            ("mean_absolute_error", 0.05, np.full(8, 1e5)),
            ("mean_squared_error", 0.0, np.zeros(8)),
        ],
    )
    def test_to_a_batch_with_one_label_up_to_rounding(self, kind, floor, labels):
        with pytest.raises(NotApplicable):
            CannotOverfitOneBatch().from_overfit(
                overfit(STALLED), LossFacts(1.3, kind, floor), BatchFacts(8, {}, labels)
            )

    @pytest.mark.parametrize("distinct", [1, 3])
    def test_to_a_batch_of_repeated_inputs(self, distinct):
        with pytest.raises(NotApplicable):
            CannotOverfitOneBatch().from_overfit(overfit(STALLED, distinct), LOSS, BATCH)

    def test_to_a_regression_line_of_two_parameters(self):
        line = ModelFacts("Linear", "torch", 2, 2)
        with pytest.raises(NotApplicable):
            CannotOverfitOneBatch().from_overfit(overfit(STALLED), LOSS, BATCH, line)

    def test_to_a_small_convolution_that_labels_every_pixel(self):
        pixels = BatchFacts(8, {}, np.arange(8 * 32 * 32).reshape(8, 32, 32) % 3)
        convolution = ModelFacts("Sequential", "torch", 2_595, 2_595)
        with pytest.raises(NotApplicable):
            CannotOverfitOneBatch().from_overfit(overfit(STALLED), LOSS, pixels, convolution)

    def test_to_a_head_on_a_frozen_backbone(self):
        mostly_frozen = ModelFacts("BertForSequenceClassification", "transformers", 80_000, 1_300)
        with pytest.raises(NotApplicable):
            CannotOverfitOneBatch().from_overfit(overfit(STALLED), LOSS, BATCH, mostly_frozen)

    def test_while_the_loss_is_still_on_its_way(self):
        slow = np.linspace(10.8, 1.2, 30)  # a language model: from ln 50,000 down
        with pytest.raises(NotApplicable):
            CannotOverfitOneBatch().from_overfit(overfit(slow), LOSS, BATCH)

    def test_where_no_loss_is_finite(self):
        with pytest.raises(NotApplicable):
            CannotOverfitOneBatch().from_overfit(overfit([math.nan, math.inf]), LOSS, BATCH)
