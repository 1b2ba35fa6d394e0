import math

import pytest

from diagnostics.facts import LossFacts, ModelFacts, OptimizerFacts, TrialFacts
from diagnostics.rule import NotApplicable
from diagnostics.rules.optimizer.loss_plateau import LossPlateau

RULE = LossPlateau()
LOSS = LossFacts(1.13, "cross_entropy", 1.08)
LEARNS = (1.13, 1.02, 0.9, 0.8, 0.7, 0.6, 0.51)
HOVERING = (1.13, 3.4, 1.8, *(1.12, 1.09) * 13, 1.1)


def trial(losses=HOVERING, better_rate=5e-5, better_losses=LEARNS, warms_up=False, ratio=0.045):
    return TrialFacts(1e-3, tuple(losses), (ratio,) * 29, better_rate, better_losses, warms_up)


class TestFires:
    def test_when_the_loss_hovers_at_the_chance_level(self):
        model = ModelFacts("DistilBertTextClassifier", "keras", 9, 9)
        finding = RULE.from_trial(trial(), LOSS, model, OptimizerFacts("Adam", (1e-3,), {}, 9, 0))
        assert (finding.rule, finding.stage, finding.severity) == ("loss-plateau", "optimizer", "warning")
        assert finding.message == (
            "On one batch, at your learning rate of 0.001, the loss is stuck at the chance level: in the last 10 "
            "of 30 steps it lies between 1.09 and 1.12, and one and the same answer for every example would reach "
            "1.08. It can be learned: at 5e-05 the loss came down to 0.51 in 7 steps."
        )
        assert finding.fix == "optimizer=keras.optimizers.Adam(learning_rate=5e-05)"
        assert finding.evidence["lowest_of_last"] == 1.09
        assert finding.evidence["highest_of_last"] == 1.12
        assert finding.evidence["best_constant_loss"] == 1.08

    def test_when_the_rate_is_so_low_that_the_loss_stays_where_it_began(self):
        assert RULE.from_trial(trial([1.1] * 30, better_rate=0.1, ratio=1e-7), LOSS) is not None


class TestStaysSilent:
    @pytest.mark.parametrize(
        "losses",
        [
            LEARNS + (0.45,) * 23,
            [1.13 - 0.004 * step for step in range(30)],  # falls slowly, and goes on to fall
            [1.6] * 30,  # stuck as well, but far above chance
            [1.13] * 20 + [0.8, 1.4] * 5,  # swings
            [1.13] * 25 + [math.nan] * 5,
        ],
        ids=["learns", "on its way", "above chance", "swings", "nan"],
    )
    def test_when_the_loss_does_something_else(self, losses):
        assert RULE.from_trial(trial(losses), LOSS) is None

    def test_when_a_gentle_rate_has_not_got_going_yet(self):
        # Adam at 2e-5: the first 30 steps bring little, at 2e-3 they bring all; a real run has thousands.
        losses = [1.1 - 0.0003 * step for step in range(30)]
        assert RULE.from_trial(trial(losses, better_rate=2e-3, ratio=2.2e-4), LOSS) is None

    def test_when_no_other_rate_gets_past_it(self):
        assert RULE.from_trial(trial(better_rate=None, better_losses=()), LOSS) is None
        assert RULE.from_trial(trial(better_losses=(1.13, 0.9)), LOSS) is None


class TestNotApplicable:
    def test_without_a_chance_level(self):
        with pytest.raises(NotApplicable, match="best constant answer is known"):
            RULE.from_trial(trial(), LossFacts(1.1, "other"))

    @pytest.mark.parametrize("warms_up", [True, None])
    def test_to_a_rate_that_may_warm_up(self, warms_up):
        with pytest.raises(NotApplicable, match="learning rate"):
            RULE.from_trial(trial(warms_up=warms_up), LOSS)
