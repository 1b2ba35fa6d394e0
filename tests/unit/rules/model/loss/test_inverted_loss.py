"""Unit tests of `InvertedLoss`."""

from __future__ import annotations

import pytest

from diagnostics.facts.dependence import AnswerLosses
from diagnostics.rules.model.loss.inverted_loss import InvertedLoss

RULE = InvertedLoss()


def judge(right, constant, reached, in_unit_range=True, scale_free=False):
    return RULE.from_losses(AnswerLosses("dice_loss", right, constant, reached, in_unit_range, scale_free))


def test_fires_on_a_score_that_is_minimised():
    finding = judge(0.9974, 0.1502, 0.0031)
    assert (finding.rule, finding.severity) == ("inverted-loss", "warning")
    assert finding.message == (
        "The loss dice_loss is higher for right predictions than for wrong ones: predictions that equal the "
        "targets, but for 1%, score 0.9974, a constant prediction 0.1502, and the model has reached 0.0031. "
        "Training makes the loss small, and so the predictions wrong."
    )
    assert finding.fix == "return 1 - score, or -score, for a score that is to be high"


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
