import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.rules.gradient.gradients_not_zeroed import GradientsNotZeroed
from tests.support.courses import judge, recorded


def history(zeroed, norms=None, passes=1):
    count = len(zeroed)
    norms = np.ones(count, np.float32) if norms is None else np.array(norms, np.float32)
    return recorded(
        total_steps=count,
        steps=np.arange(count),
        layers=("0",),
        gradient_norms=norms,
        layer_gradient_norms=norms[:, None],
        gradient_known=np.ones(count, bool),
        learning_rates=np.full((count, 1), 0.1),
        training_mode=np.ones(count, np.int8),
        passes=np.full(count, passes),
        gradients_zeroed=np.array(zeroed, np.int8),
    )


class TestFires:
    def test_on_gradients_that_pile_up(self):
        finding = judge(GradientsNotZeroed().from_history, history([-1] + [0] * 7, np.linspace(1, 8, 8)))
        assert (finding.rule, finding.severity, finding.step) == ("gradients-not-zeroed", "error", 1)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_a_loop_that_zeroes_once_an_epoch(self):
        zeroed = np.array([-1] + [0] * 99)
        zeroed[20::20] = 1
        finding = judge(GradientsNotZeroed().from_history, history(zeroed))
        assert finding.evidence["steps_not_zeroed"] == 95


class TestSilent:
    def test_on_a_loop_that_zeroes(self):
        assert judge(GradientsNotZeroed().from_history, history([-1] + [1] * 9)) is None

    def test_on_an_accumulation_of_eight_batches(self):
        assert judge(GradientsNotZeroed().from_history, history([-1] + [1] * 9, passes=8)) is None

    def test_on_a_loop_that_misses_one_now_and_then(self):
        assert judge(GradientsNotZeroed().from_history, history([-1, 1, 0, 1, 0, 0, 0, 1])) is None


def test_not_applicable_before_enough_steps_were_seen():
    few = history([-1, 0, 0, 0])
    for facts in (few, history([-1] * 4)):
        with pytest.raises(NotApplicable):
            judge(GradientsNotZeroed().from_history, facts)
