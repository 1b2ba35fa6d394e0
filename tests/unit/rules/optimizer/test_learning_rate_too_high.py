import dataclasses
import math

import numpy as np
import pytest

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import SimpleFit, TargetHistory, Verdicts
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.optimizer.learning_rate_too_high import LearningRateTooHigh
from diagnostics.rules.registry import all_rules, causality_of
from tests.support.courses import answers, history, judge

RULE, CAUSALITY = LearningRateTooHigh(), causality_of(all_rules())
FLOOR = 1.08  # nats: three classes, nearly balanced
LOSS = LossFacts(1.13, "cross_entropy", FLOOR)
KERAS = ModelFacts("DistilBertTextClassifier", "keras", 9, 9)
ADAM = OptimizerFacts("Adam", (1e-3,), {}, 9, 0)
STALLED = (1.13, 3.4, 1.8, *(1.12, 1.09) * 13, 1.1)
LEARNS = (1.13, 1.02, 0.9, 0.8, 0.7, 0.6, 0.51)


def trial(losses=STALLED, ratio=0.045, better_rate=5e-5, better_losses=LEARNS, warms_up=False, rate=1e-3):
    return TrialFacts(rate, tuple(losses), (ratio, ratio / 3), better_rate, better_losses, warms_up)


class TestFires:
    def test_when_the_loss_stalls_and_a_much_smaller_rate_learns_the_batch(self):
        finding = RULE.from_trial(trial(), LOSS, KERAS, ADAM)
        assert (finding.rule, finding.stage, finding.severity) == (
            "learning-rate-too-high",
            "optimizer",
            "warning",
        )
        assert finding.evidence == {
            "learning_rate": 1e-3,
            "first_loss": 1.13,
            "final_loss": 1.1,
            "steps": 30,
            "better_rate": 5e-5,
            "better_final_loss": 0.51,
            "better_steps": 7,
            "batches": 1,
            "best_constant_loss": FLOOR,
            "largest_update_ratio": 0.045,
        }

    def test_when_a_few_batches_in_turn_are_not_learned(self):
        turn = (1.4, 0.9, 1.1, 0.4)  # one batch is easy: what counts is the mean over a turn of four
        other = (1.1, 1.0, 0.9, 0.8, 0.6, 0.5, 0.5, 0.3)
        pooled = TrialFacts(
            1e-3, turn * 8, (0.045,) * 31, 1e-4, other, False, batches=4, constant_baseline_loss=1.09
        )
        finding = RULE.from_trial(pooled, LOSS)
        assert finding.evidence["batches"] == 4

    def test_when_the_run_becomes_nan_after_a_few_steps(self):
        losses = (3.58, 11.0, 1447.2, 9.8e9, 3.9e30, math.nan)  # SGD at 1.0 on a small regression
        diverged = TrialFacts(1.0, losses, (0.4, 8.1, 40.0, math.inf), 0.1, (3.6, 2.4, 1.9), False)
        finding = RULE.from_trial(diverged, LossFacts(3.58, "mean_squared_error", 3.92))
        assert finding.evidence["final_loss"] == "nan"
        assert finding.evidence["largest_update_ratio"] == "inf"

    def test_when_the_loss_swings_and_dips_now_and_then(self):
        # Measured: Adam at 1e-3 on a DistilBERT of 6 layers, 512 wide, from scratch; 16 sentence pairs.
        swinging = (
            *(1.097, 0.9697, 1.5499, 0.914, 0.9198, 0.9153, 0.6749, 1.117, 1.0201, 1.0835),
            *(1.029, 0.7944, 1.4481, 1.1195, 0.8832, 0.8368, 2.4921, 0.7978, 0.7039, 0.6813),
            *(0.6162, 0.8224, 0.817, 0.8066, 0.7876, 0.769, 0.7565, 0.8703, 0.9318, 0.8892),
        )
        loss = LossFacts(1.097, "cross_entropy", 0.9003)
        assert RULE.from_trial(trial(swinging, 0.05, 1e-4, (1.097, 0.899, 0.76, 0.4414)), loss) is not None

    @pytest.mark.parametrize(
        "model",
        [ModelFacts("Net", "torch", 9, 9), ModelFacts("Bert", "transformers", 9, 9, computes_loss=True), None],
    )
    def test_and_words_the_fix_for_the_framework(self, model):
        assert RULE.from_trial(trial(), LOSS, model, ADAM).severity == "warning"


class TestStaysSilent:
    def test_when_the_users_rate_learns_the_batch_however_large_its_steps(self):
        learns = (2.29, 1.85, 1.48, 1.18, 0.93, 0.73, 0.56, 0.43, 0.32, 0.24)  # Adam at 1e-3 on a small MLP
        assert RULE.from_trial(trial(learns, 0.034, None, ()), LOSS) is None

    @pytest.mark.parametrize(
        "losses",
        [(1.13, *(1.3, 0.85) * 10, *(0.9,) * 9), (1.13, *(1.12,) * 12, 0.5, *(1.12,) * 16)],
        ids=["ends below the best constant prediction", "was at half of it once"],
    )
    def test_when_the_loss_does_get_below(self, losses):
        assert RULE.from_trial(trial(losses), LOSS) is None

    def test_when_no_other_rate_does_better(self):
        assert RULE.from_trial(trial(better_rate=None, better_losses=()), LOSS) is None

    def test_when_the_other_rate_does_not_do_well_itself(self):
        assert RULE.from_trial(trial(better_losses=(1.13, 1.0, 0.8)), LOSS) is None

    def test_when_the_better_rate_is_a_neighbour(self):
        assert RULE.from_trial(trial(better_rate=5e-4), LOSS) is None

    def test_when_the_better_rate_is_larger(self):
        assert RULE.from_trial(trial(better_rate=1e-2), LOSS) is None

    def test_when_the_steps_were_small(self):
        assert RULE.from_trial(trial(ratio=0.002), LOSS) is None


class TestNotApplicable:
    @pytest.mark.parametrize("floor", [None, 0.0])
    def test_without_a_best_constant_answer(self, floor):
        with pytest.raises(NotApplicable):
            RULE.from_trial(trial(), LossFacts(1.1, "cross_entropy", floor))

    def test_to_a_rate_that_warms_up(self):
        with pytest.raises(NotApplicable):
            RULE.from_trial(trial(warms_up=True), LOSS)

    def test_to_a_schedule_that_is_not_understood(self):
        with pytest.raises(NotApplicable):
            RULE.from_trial(trial(warms_up=None), LOSS)

    def test_to_a_run_that_recovers_from_its_first_step(self):
        recovering = (1.1, 20, 18, 16, 14, 12, 10, 9, 8, 7, 6, 5, 4.2, 3.6, 3.1, 2.7, 2.3, 2.0, 1.8, 1.6, 1.5)
        with pytest.raises(NotApplicable):
            RULE.from_trial(trial(recovering), LOSS)

    def test_to_a_trial_of_a_few_steps(self):
        with pytest.raises(NotApplicable):
            RULE.from_trial(trial(STALLED[:5]), LOSS)


class TestWhileTraining:
    def test_fires_on_a_classifier_that_is_stuck_at_large_steps(self):
        run = history([0.7] * 400, update=0.045, rates=1e-3)
        finding = judge(RULE.from_history, run, answers([0.71] * 20), KERAS, ADAM)
        assert (finding.rule, finding.severity, finding.step) == ("learning-rate-too-high", "warning", 140)
        assert finding.evidence["course"] == "stuck"

    def test_fires_on_a_loss_that_soars_until_it_is_not_finite(self):
        run = history([1.0, 3.0, 50.0, 1e3, 1e5, 1e8, np.inf], update=2.0, rates=3.0)
        assert judge(RULE.from_history, run).severity == "warning"

    def test_says_nothing_of_a_rate_that_is_not_known(self):
        assert (
            judge(RULE.from_history, history(np.geomspace(1, 1e8, 60), update=2.0, rates=np.nan)).severity
            == "warning"
        )

    def test_fires_on_the_loss_of_one_batch_that_swings(self):
        same = np.full(100, 7, np.uint64)
        assert judge(RULE.from_history, history([1.0, 4.0] * 50, update=0.03, prints=same)).severity == "warning"

    def test_is_silent_on_a_run_that_learns_at_large_steps(self):
        run = history(np.geomspace(0.7, 0.01, 400), update=0.05)
        assert judge(RULE.from_history, run, answers(np.geomspace(0.7, 0.01, 20))) is None

    def test_is_silent_on_a_run_that_is_stuck_at_ordinary_steps(self):
        assert judge(RULE.from_history, history([0.7] * 400, update=0.002), answers([0.7] * 20)) is None

    def test_is_not_applicable_if_no_update_was_measured(self):
        with pytest.raises(NotApplicable, match="needs steps with the weights compared before and after"):
            judge(RULE.from_history, history([1.0] * 60, update_ratios=None, sampled_steps=None))

    def test_is_not_applicable_to_a_run_of_ten_steps(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, history([1.0] * 10))


class TestEndedRun:
    @staticmethod
    def judged(update=30.0, error=0.2, constant=1.1):
        steps = np.arange(0, 200, 20)
        fit = SimpleFit(120, 120, 1.0, error, linear=True, of_classes=False)
        targets = TargetHistory("cross_entropy", steps, np.full(10, 1.2), np.full(10, constant), 320, 3, fit)
        course = history(np.full(200, 1.2), rates=1.0, update=update)
        return judge(RULE.from_ended_run, course, targets, Verdicts(frozenset(), frozenset()))

    def test_fires_where_one_step_replaced_the_weights(self):
        assert self.judged().severity == "warning"

    @pytest.mark.parametrize("other", [{"update": 0.3}, {"error": 0.99}, {"constant": 2.0}])
    def test_is_silent_where_one_of_these_is_otherwise(self, other):
        assert self.judged(**other) is None

    @pytest.mark.parametrize(
        ("lower", "update", "explained"), [(0.01, 30.0, True), (1.09, 30.0, False), (0.01, 0.3, False)]
    )
    def test_explains_another_cure_where_a_lower_rate_cures_too(self, lower, update, explained):
        rate = dataclasses.replace(self.judged(), evidence={"update_size": update})
        tried = {"inputs standardised": 0.001, "learning rate * 10": "inf", "learning rate / 100": lower}
        evidence = {"experiments": tried, "copies_constant_loss": 1.1}
        cure = Finding("unscaled-inputs", "warning", "data", "The inputs are large.", "scale them", evidence)
        assert CAUSALITY.explains(rate, cure) is explained
        assert not CAUSALITY.explains(cure, rate)
