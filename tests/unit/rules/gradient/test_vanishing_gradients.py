import dataclasses
import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import Verdicts
from diagnostics.facts.layers import PARTS, RecurrenceFacts, RecurrentLayer
from diagnostics.facts.pipeline import GradientFacts
from diagnostics.rules.gradient.vanishing_gradients import VanishingGradients
from tests.support.courses import judge, recorded

RULE = VanishingGradients()


def history(norms=(1.0,), moved=None, losses=None, steps=60):
    count = len(norms)
    layers = np.tile(np.array(norms, np.float32), (steps, 1))
    losses = np.full(steps, 1.4) if losses is None else np.array(losses)
    return recorded(
        total_steps=steps,
        steps=np.arange(steps),
        losses=losses,
        loss_known=np.ones(steps, bool),
        layers=tuple(f"layers.{number}" for number in range(count)),
        gradient_norms=np.sqrt((layers.astype(float) ** 2).sum(1)),
        layer_gradient_norms=layers,
        gradient_known=np.ones(steps, bool),
        learning_rates=np.full((steps, 1), 0.1),
        training_mode=np.ones(steps, np.int8),
        passes=np.ones(steps, np.int64),
        gradients_zeroed=np.ones(steps, np.int8),
        sampled_steps=np.arange(0, steps, 10),
        update_ratios=np.tile(np.array(moved if moved is not None else norms, np.float32), (steps // 10, 1)),
    )


def recurrence(share, length=40, looks=8, rising=True):
    profile = np.geomspace(share, 1.0, PARTS, dtype=np.float64) * 2e-3
    profile = profile if rising else profile[::-1]
    steps = np.arange(looks) * 20
    layer = RecurrentLayer(
        "memory", "RNN", steps, np.full(looks, length), np.tile(profile, (looks, 1)).astype(np.float32)
    )
    return RecurrenceFacts((layer,))


class TestFires:
    def test_on_a_gradient_that_fades_through_time(self):
        finding = judge(RULE.from_recurrence, recurrence(1e-10), history())
        assert (finding.rule, finding.severity, finding.step) == ("vanishing-gradients", "warning", 140)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_one_of_which_nothing_arrives_at_all(self):
        facts = recurrence(1e-10)
        facts.layers[0].profiles[:, :4] = 0
        assert judge(RULE.from_recurrence, facts, history()).severity == "warning"

    def test_on_a_gradient_that_fades_through_layers(self):
        finding = judge(RULE.from_history, history(np.geomspace(1e-9, 0.1, 9), np.geomspace(1e-10, 1e-2, 9)))
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_layers_that_move_although_no_gradient_reaches_them(self):
        finding = judge(RULE.from_history, history(np.geomspace(1e-9, 0.1, 9), np.full(9, 1e-3)))
        assert "the loss has not fallen" in finding.message


class TestOfTheFirstBatch:
    def judged(self, norms, losses=None, found=()):
        gradients = GradientFacts(True, {f"dense_{n}/kernel": norm for n, norm in enumerate(norms)}, {}, 100)
        verdicts = Verdicts(frozenset(found), frozenset())
        return judge(RULE.from_first_batch, gradients, history(losses=losses), verdicts)

    def test_warns_if_the_loss_has_not_fallen(self):
        assert self.judged(np.geomspace(1e-9, 0.1, 14)).severity == "warning"

    @pytest.mark.parametrize(
        ("norms", "losses", "found"),
        [
            (np.geomspace(1e-9, 0.1, 14), np.linspace(1.4, 0.3, 60), ()),
            (np.geomspace(1e-3, 0.1, 14), None, ()),
            (np.array([1e-9, 0.1] * 7), None, ()),
            (np.geomspace(1e-9, 0.1, 14), None, ["vanishing-gradients"]),
        ],
        ids=["it falls", "within a hundred", "here and there", "known from the steps"],
    )
    def test_is_silent(self, norms, losses, found):
        assert self.judged(norms, losses, found) is None

    def test_needs_layers(self):
        with pytest.raises(NotApplicable):
            self.judged(np.geomspace(1e-9, 0.1, 11))


class TestSilent:
    def test_on_a_model_that_fades_and_learns_all_the_same(self):
        assert judge(RULE.from_recurrence, recurrence(1e-10), history(losses=np.linspace(1.4, 0.3, 60))) is None

    def test_on_a_gradient_that_reaches_back(self):
        assert judge(RULE.from_recurrence, recurrence(1e-3), history()) is None

    def test_on_one_that_is_largest_at_the_beginning(self):
        assert judge(RULE.from_recurrence, recurrence(1e-10, rising=False), history()) is None

    def test_on_a_loss_that_was_thrown_back_by_a_gradient_that_explodes(self):
        facts = history()
        facts.gradients.norms[30] = 500.0
        assert judge(RULE.from_recurrence, recurrence(1e-10), facts) is None

    def test_on_layers_within_a_hundred_of_each_other(self):
        assert judge(RULE.from_history, history(np.geomspace(1e-3, 0.1, 9))) is None

    def test_on_layers_that_move_while_the_loss_falls(self):
        facts = history(np.geomspace(1e-9, 0.1, 9), np.full(9, 1e-3), np.linspace(1.4, 0.3, 60))
        assert judge(RULE.from_history, facts) is None

    def test_on_small_gradients_here_and_there(self):
        norms = np.array([1e-9, 0.1] * 5)
        assert judge(RULE.from_history, history(norms, norms * 0.1)) is None


class TestNotApplicable:
    def test_before_enough_steps(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_recurrence, recurrence(1e-10, looks=3), history())
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, history(steps=10))

    def test_without_losses(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_recurrence, recurrence(1e-10), dataclasses.replace(history(), losses=None))

    def test_with_few_layers(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, history(np.geomspace(1e-9, 0.1, 5)))
