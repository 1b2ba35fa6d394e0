import math
from dataclasses import replace

import numpy as np
import pytest

from diagnostics.engine.causality import Causality
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import Verdicts
from diagnostics.facts.dependence import DependenceFacts, SamenessFacts
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.facts.training import LossHistory
from diagnostics.facts.trials import OverfitFacts
from diagnostics.rules.model.ignores_input import IgnoresInput
from diagnostics.rules.registry import all_rules
from tests.support.courses import recorded

BATCH = BatchFacts(8, {}, np.array([0, 1, 2, 0, 1, 2, 0, 1]))
STALLED = (1.2, 1.1, 1.09)
SINGLE = OutputFacts((8, 1), 2, (), 1.0, 1.0, last_activation="softmax", indexed_labels=False)


class TestSoftmaxOverOneUnit:
    def test_is_found_without_a_trial(self):
        loss = LossFacts(0.7, "binary_cross_entropy", 0.69, name='loss="binary_crossentropy"')
        finding = IgnoresInput().from_outputs(SINGLE, loss)
        assert (finding.rule, finding.severity) == ("ignores-input", "error")

    def test_is_explained_by_nothing_else(self):
        finding, rules = IgnoresInput().from_outputs(SINGLE), all_rules()
        other = replace(finding, evidence={"output_spread": 0.0})
        cause = replace(finding, rule="unscaled-inputs", evidence={})
        assert not Causality(rules).explains(cause, finding)
        assert Causality(rules).explains(cause, other)

    @pytest.mark.parametrize(
        "outputs",
        [
            replace(SINGLE, last_activation="sigmoid"),
            replace(SINGLE, shape=(8, 2), lowest=0.2, highest=0.8),
            replace(SINGLE, lowest=0.02, highest=0.4),  # over the batch
        ],
    )
    def test_is_not_found_elsewhere(self, outputs):
        assert IgnoresInput().from_outputs(outputs) is None

    @pytest.mark.parametrize("outputs", [replace(SINGLE, shape=(1, 1)), replace(SINGLE, lowest=None)])
    def test_needs_predictions(self, outputs):
        with pytest.raises(NotApplicable):
            IgnoresInput().from_outputs(outputs)


class TestFires:
    @pytest.mark.parametrize("spread", [0.0, 3e-7])
    def test_when_all_answers_are_equal_up_to_rounding(self, spread):
        overfit = OverfitFacts(STALLED, (1e-3,), 8, spread)
        finding = IgnoresInput().from_overfit(overfit, LossFacts(1.2, "cross_entropy", 1.08), BATCH)
        assert (finding.rule, finding.severity, finding.stage) == ("ignores-input", "error", "model")
        assert finding.evidence == {"output_spread": spread, "distinct_inputs": 8, "steps": 3}

    def test_without_knowing_loss_and_labels(self):
        assert IgnoresInput().from_overfit(OverfitFacts((1.0,), (1e-3,), 2, 0.0)).severity == "error"

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
        with pytest.raises(NotApplicable):
            IgnoresInput().from_overfit(OverfitFacts(STALLED, (1e-3,), 1, 0.0))

    @pytest.mark.parametrize(
        "labels",
        [np.array([1, 1]), np.array([[1, -100], [-100, 1]]), np.array([0.5, 0.5]), np.array([[1, 2], [1, 2]])],
    )
    def test_to_a_batch_whose_examples_want_the_same_answer(self, labels):
        batch = BatchFacts(2, {}, labels, ignore_index=-100)
        with pytest.raises(NotApplicable):
            IgnoresInput().from_overfit(OverfitFacts(STALLED, (1e-3,), 2, 0.0), batch=batch)

    @pytest.mark.parametrize("spread", [None, math.nan])
    def test_without_finite_predictions(self, spread):
        with pytest.raises(NotApplicable):
            IgnoresInput().from_overfit(OverfitFacts(STALLED, (1e-3,), 8, spread))


class TestGivesBackTheMean:
    @staticmethod
    def judge(
        answers=0.1, apart=0.1, level=0.5, steps=400, trained=True, ends=1.0, known=True, linear=None, **more
    ):
        same = SamenessFacts(answers, apart, level, 196, known, linear, 8, **more)
        seen = DependenceFacts(sameness=same, trained=trained)
        history = recorded(
            total_steps=steps, steps=np.arange(steps), layers=(), learning_rates=np.full((steps, 1), 0.1)
        ).steps
        losses = ends and LossHistory(np.arange(steps), np.linspace(1.0, ends, steps))
        return IgnoresInput().from_answers(seen, history, losses, Verdicts(frozenset(), frozenset()))

    def test_fires_on_a_collapsed_autoencoder(self):
        finding = self.judge()
        assert (finding.rule, finding.severity) == ("ignores-input", "warning")

    @pytest.mark.parametrize("given", [{"level": 0.1}, {"known": False}, {"level": 0.1, "known": False}])
    def test_fires_where_structured_inputs_all_get_one_answer(self, given):
        finding = self.judge(answers=1e-4, linear=0.96, **given)
        assert (finding.severity, finding.evidence["kept_by_components"]) == ("warning", 0.96)

    @pytest.mark.parametrize("given", [{"answers": 0.05}, {"linear": 0.2}, {"linear": None}])
    @pytest.mark.parametrize("unsure", [{"level": 0.1}, {"known": False}])
    def test_silent_on_inputs_without_structure_and_on_residuals(self, given, unsure):
        assert self.judge(**{"answers": 1e-4, "linear": 0.9} | given | unsure) is None

    @pytest.mark.parametrize("healthy", [{"answers": 0.6}, {"apart": 0.9}, {"level": 0.1}, {"ends": 0.8}])
    def test_silent_on_copies_noise_and_residuals(self, healthy):
        assert self.judge(**healthy) is None

    def test_says_which_term_has_vanished(self):
        assert "one has fallen to 4.5e-05" in self.judge(terms=(0.43, 4.5e-5)).message

    @pytest.mark.parametrize("terms", [(0.4,), (0.4, 0.1), (0.4, -1e-5)])
    def test_says_nothing_of_terms_that_have_not(self, terms):
        assert "terms" not in self.judge(terms=terms).message

    def test_a_term_may_fall_below_zero_by_rounding(self):
        assert "one has fallen to 0, while" in self.judge(terms=(0.43, -2e-9)).message

    def test_a_vanished_term_replaces_the_losses(self):
        assert self.judge(answers=1e-4, ends=None, terms=(0.43, 4.5e-5)).severity == "warning"
        assert self.judge(ends=None, terms=(0.43, 4.5e-5)) is None  # they vary, and may vary more later

    @pytest.mark.parametrize("terms", [(), (0.4, 0.1)])
    def test_needs_the_losses_where_no_term_has_vanished(self, terms):
        with pytest.raises(NotApplicable):
            self.judge(answers=1e-4, ends=None, terms=terms)

    @pytest.mark.parametrize("early", [{"steps": 150}, {"trained": False}])
    def test_needs_a_trained_model(self, early):
        with pytest.raises(NotApplicable):
            self.judge(**early)
