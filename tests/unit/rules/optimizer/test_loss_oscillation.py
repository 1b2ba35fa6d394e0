import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.rules.optimizer.loss_oscillation import LossOscillation
from tests.support.courses import history, judge

RULE = LossOscillation()
SAME = np.full(100, 7, np.uint64)


class TestFires:
    def test_on_one_batch_whose_loss_jumps_up_and_down(self):
        finding = judge(RULE.from_history, history([1.0, 4.0] * 50, update=1e-3, prints=SAME))
        assert (finding.rule, finding.severity, finding.step) == ("loss-oscillation", "warning", 50)


class TestSilent:
    def test_where_large_steps_explain_it(self):
        assert judge(RULE.from_history, history([1.0, 4.0] * 50, update=0.02, prints=SAME)) is None

    def test_on_a_loss_that_swings_and_falls(self):
        losses = np.geomspace(4, 0.1, 100) * np.tile([1, 3], 50)
        assert judge(RULE.from_history, history(losses, prints=SAME)) is None


def test_not_applicable_where_the_batches_differ():
    with pytest.raises(NotApplicable):
        judge(RULE.from_history, history([1.0, 4.0] * 50))
