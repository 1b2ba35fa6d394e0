import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import Verdicts
from diagnostics.rules.optimizer.loss_divergence import LossDivergence
from tests.support.courses import answers, history, judge

RULE = LossDivergence()


class TestFires:
    def test_on_a_classifier_that_ends_far_above_chance(self):
        losses = [0.7, 0.6, 0.5, *np.linspace(0.5, 3.0, 17)]
        finding = judge(RULE.from_history, history(steps=400, update=2e-3), answers(losses))
        assert (finding.rule, finding.severity, finding.step) == ("loss-divergence", "warning", 300)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence


class TestSilent:
    def test_where_large_steps_explain_it(self):
        losses = [0.7, 0.6, 0.5, *np.linspace(0.5, 3.0, 17)]
        assert judge(RULE.from_history, history(steps=400, update=0.05), answers(losses)) is None

    @pytest.mark.parametrize(
        "losses",
        [
            np.geomspace(2.3, 0.05, 400),
            [2.3] * 20 + [40.0] * 20 + list(np.geomspace(5, 0.3, 360)),  # a spike while the rate warms up
            np.geomspace(1e-3, 1.0, 400),  # values that grow
            np.linspace(0.7, 6.0, 400),  # the generator of two networks that compete
            1e-6 * np.random.default_rng(0).random(400),
        ],
        ids=["falls", "early spike", "values grow", "generator", "tiny"],
    )
    def test_on_a_healthy_loss(self, losses):
        assert judge(RULE.from_history, history(losses, norms=np.linspace(1, 2, 20))) is None


def test_not_applicable_without_losses():
    with pytest.raises(NotApplicable):
        judge(RULE.from_history, history(steps=400))


def fall(losses, alone=True):
    return judge(RULE.from_fall, history(losses), Verdicts(frozenset(), frozenset(), trained_alone=alone))


class TestFall:
    def test_below_0_ever_more_quickly(self):
        finding = fall(40 - np.exp(np.linspace(0, 9, 200)))
        assert (finding.rule, finding.severity) == ("loss-divergence", "warning")

    def test_silent_on_a_likelihood_and_on_players_in_turn(self):
        assert fall(10 - 60 * np.sqrt(np.linspace(0, 1, 200))) is None
        assert fall(40 - np.exp(np.linspace(0, 9, 200)), alone=False) is None
        assert fall(np.exp(-np.linspace(0, 9, 200))) is None
