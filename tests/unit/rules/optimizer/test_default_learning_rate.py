import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.optimizer.default_learning_rate import DefaultLearningRate
from tests.support.courses import answers, history, judge

RULE = DefaultLearningRate()
LOSS = LossFacts(1.13, "cross_entropy", 1.08)
KERAS = ModelFacts("DistilBertTextClassifier", "keras", 9, 9)
STALLED = (1.13, 3.4, 1.8, *(1.12, 1.09) * 13, 1.1)
LEARNS = (1.13, 1.02, 0.9, 0.8, 0.7, 0.6, 0.51)
TOO_HIGH = TrialFacts(1e-3, STALLED, (0.045,) * 29, 5e-5, LEARNS, warms_up=False)
HEALTHY = TrialFacts(1e-3, (*LEARNS, 0.4, 0.3, 0.2), (0.03,) * 9, None, (), warms_up=False)


def adam(rate=1e-3, default=1e-3):
    return OptimizerFacts("Adam", (rate,), {}, 9, 0, default)


class TestFires:
    def test_on_a_name_that_hides_a_rate(self):
        finding = RULE.from_trial(adam(), TOO_HIGH, LOSS, KERAS)
        assert (finding.rule, finding.stage, finding.severity) == ("default-learning-rate", "optimizer", "warning")
        assert finding.evidence["default_rate"] == 1e-3
        assert finding.evidence["unfit"] == "too high"
        assert finding.evidence["better_rate"] == 5e-5

    def test_on_an_optimizer_built_bare(self):
        assert RULE.from_trial(adam(), TOO_HIGH, LOSS, ModelFacts("Encoder", "torch", 9, 9)).severity == "warning"

    def test_on_a_rate_that_keras_has_rounded_to_float32(self):
        assert RULE.from_trial(adam(float(np.float32(1e-3))), TOO_HIGH, LOSS, KERAS) is not None

    def test_on_a_default_that_is_too_low(self):
        optimizer = OptimizerFacts("Gentle", (1e-8,), {}, 9, 0, default_rate=1e-8)
        crawling = TrialFacts(1e-8, (1.13,) * 30, (1e-8,) * 29, 1e-3, LEARNS, warms_up=False)
        assert RULE.from_trial(optimizer, crawling, LOSS).severity == "warning"


class TestStaysSilent:
    def test_on_a_default_that_works(self):
        assert RULE.from_trial(adam(), HEALTHY, LOSS, KERAS) is None

    def test_on_an_unfit_rate_that_is_not_the_default(self):
        assert RULE.from_trial(adam(rate=3e-3), TOO_HIGH, LOSS, KERAS) is None

    def test_where_one_parameter_group_has_a_rate_of_its_own(self):
        optimizer = OptimizerFacts("Adam", (1e-3, 1e-5), {}, 9, 0, 1e-3)
        assert RULE.from_trial(optimizer, TOO_HIGH, LOSS, KERAS) is None


class TestNotApplicable:
    def test_to_an_optimizer_without_a_default(self):
        with pytest.raises(NotApplicable):
            RULE.from_trial(adam(default=None), TOO_HIGH, LOSS)

    def test_to_a_rate_that_warms_up(self):
        warming = TrialFacts(1e-3, STALLED, (0.045,) * 29, 5e-5, LEARNS, warms_up=True)
        with pytest.raises(NotApplicable):
            RULE.from_trial(adam(), warming, LOSS)


class TestWhileTraining:
    def test_fires_where_the_run_shows_that_it_is_too_high(self):
        run = history([0.7] * 400, update=0.045, rates=1e-3)
        finding = judge(RULE.from_history, adam(), run, answers([0.71] * 20), KERAS)
        assert (finding.severity, finding.step) == ("warning", 140)
        assert finding.evidence["unfit"] == "too high"

    def test_is_silent_at_another_rate_and_where_the_default_works(self):
        stuck = answers([0.71] * 20)
        assert judge(RULE.from_history, adam(), history([0.7] * 400, update=0.045, rates=3e-3), stuck) is None
        assert judge(RULE.from_history, adam(), history([0.7] * 400, update=1e-3, rates=1e-3), stuck) is None

    def test_is_not_applicable_if_no_update_was_measured(self):
        run = history([0.7] * 400, update_ratios=None, sampled_steps=None)
        with pytest.raises(NotApplicable, match="needs steps with the weights compared before and after"):
            judge(RULE.from_history, adam(), run)
