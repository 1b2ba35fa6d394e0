"""Unit tests of `InvertedLoss`."""

from __future__ import annotations

import pytest

from diagnostics.facts.course import NegatedLoss, OpposedGradients
from diagnostics.facts.dependence import LossAtTarget
from diagnostics.rules.model.loss.inverted_loss import InvertedLoss

RULE = InvertedLoss()


def judge(right, constant, reached, in_unit_range=True, scale_free=False):
    return RULE.from_losses(LossAtTarget("dice_loss", right, constant, reached, in_unit_range, scale_free))


def test_fires_on_a_score_that_is_minimised():
    finding = judge(0.9974, 0.1502, 0.0031)
    assert (finding.rule, finding.severity) == ("inverted-loss", "warning")


def test_fires_on_a_cosine_of_any_vectors():
    assert judge(2.0, 1.1, 0.02, in_unit_range=False, scale_free=True) is not None


@pytest.mark.parametrize(
    "losses",
    [(0.003, 0.85, 0.1), (-1.0, -0.2, -0.9), (0.5, 0.48, 0.1), (1.0, 0.2, 1.0)],
    ids=["right", "minus", "about equal", "never minimised"],
)
def test_silent(losses):
    assert judge(*losses) is None


def test_silent_where_targets_may_be_costs():
    assert judge(1.0, 0.1, 0.0, in_unit_range=False) is None


def of_formula(first=2.0, last=90.0, constant=2.1, one_target=False, maximized=False):
    return RULE.from_formula(NegatedLoss("mean_squared_error", 20, first, last, constant, one_target, maximized))


def test_fires_on_minus_a_squared_error():
    finding = of_formula()
    assert (finding.rule, finding.severity) == ("inverted-loss", "warning")


def test_names_the_optimizer_that_maximises():
    assert of_formula(maximized=True).severity == "warning"


@pytest.mark.parametrize(
    "change",
    [{"first": 0.4}, {"last": 1.9}, {"one_target": True}],
    ids=["a trained model forgets", "it falls", "a discriminator is to be deceived"],
)
def test_silent_on_a_loss_that_is_to_rise(change):
    assert of_formula(**change) is None


def of_gradients(opposed, of_masks=True, maximized=False):
    return RULE.from_gradients(OpposedGradients(of_masks, 20, opposed, maximized))


def test_fires_on_gradients_that_point_away_from_the_targets():
    assert of_gradients(19).severity == "warning"
    assert of_gradients(20, of_masks=False).severity == "warning"
    assert of_gradients(20, maximized=True).severity == "warning"


def test_silent_where_only_some_do():
    assert of_gradients(17) is None
