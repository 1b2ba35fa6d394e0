import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.rules.optimizer.negative_learning_rate import NegativeLearningRate
from tests.support.courses import history, judge

RULE = NegativeLearningRate()


def test_fires_on_a_factor_that_counts_on():
    finding = judge(RULE.from_steps, history(np.ones(100), rates=0.02 * (1 - np.arange(100) / 20)))
    assert (finding.rule, finding.severity, finding.step) == ("negative-learning-rate", "error", 21)
    assert finding.message == (
        "The learning rate is below 0 from step 21 of 100 on, and falls to -0.079. A step at such a rate goes up "
        "the gradient, and the loss rises. A factor of the schedule, such as 1 - step / length, counts on beyond "
        "its length."
    )
    assert finding.fix == "LambdaLR(optimizer, lambda step: max(0.0, 1 - step / length))"


@pytest.mark.parametrize("rates", [0.02 * (1 - np.arange(100) / 99), np.full(100, 0.1), np.zeros(100)])
def test_is_silent_at_zero_and_above(rates):
    assert judge(RULE.from_steps, history(np.ones(100), rates=rates)) is None


def test_not_applicable_without_rates():
    with pytest.raises(NotApplicable, match="needs the learning rates of the steps"):
        judge(RULE.from_steps, history(np.ones(100), rates=np.nan))
