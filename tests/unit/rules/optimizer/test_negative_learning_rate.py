import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.rules.optimizer.negative_learning_rate import NegativeLearningRate
from tests.support.courses import history, judge

RULE = NegativeLearningRate()


def test_fires_on_a_factor_that_counts_on():
    finding = judge(RULE.from_steps, history(np.ones(100), rates=0.02 * (1 - np.arange(100) / 20)))
    assert (finding.rule, finding.severity, finding.step) == ("negative-learning-rate", "error", 21)


@pytest.mark.parametrize("rates", [0.02 * (1 - np.arange(100) / 99), np.full(100, 0.1), np.zeros(100)])
def test_is_silent_at_zero_and_above(rates):
    assert judge(RULE.from_steps, history(np.ones(100), rates=rates)) is None


def test_not_applicable_without_rates():
    with pytest.raises(NotApplicable):
        judge(RULE.from_steps, history(np.ones(100), rates=np.nan))
