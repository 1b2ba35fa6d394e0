import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.layers import UnderflowFacts
from diagnostics.rules.numerics.half_precision_underflow import SMALLEST_FLOAT16, HalfPrecisionUnderflow

RULE = HalfPrecisionUnderflow()


def underflow(shares, least=SMALLEST_FLOAT16, zeros=0.1, steps=6):
    shares = np.tile(np.array(shares, float), (steps, 1))
    return UnderflowFacts(
        tuple(f"layers.{number}" for number in range(shares.shape[1])),
        np.arange(steps) * 20,
        np.full(shares.shape, least),
        shares,
        np.broadcast_to(zeros, shares.shape).astype(float),
    )


class TestFires:
    def test_on_gradients_that_crowd_at_the_least_number(self):
        finding = RULE.from_underflow(underflow([0.31, 0.42, 0.0], zeros=[0.15, 0.21, 1.0]))
        assert (finding.rule, finding.severity, finding.step) == ("half-precision-underflow", "warning", 0)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_gradients_that_were_clipped_since(self):
        assert RULE.from_underflow(underflow([0.4], least=SMALLEST_FLOAT16 / 9)) is not None


class TestSilent:
    def test_on_gradients_far_from_it(self):
        assert RULE.from_underflow(underflow([0.05, 0.0])) is None

    def test_on_equal_numbers_of_another_size(self):
        assert RULE.from_underflow(underflow([1.0], least=1 / 1024)) is None

    def test_on_those_that_a_scaler_has_brought_back_to_their_size(self):
        assert RULE.from_underflow(underflow([0.4], least=SMALLEST_FLOAT16 / 65536)) is None

    def test_on_a_few_steps_of_many(self):
        facts = underflow([0.4])
        facts.at_least[:3] = 0.0
        assert RULE.from_underflow(facts) is None


def test_not_applicable_before_three_steps_were_looked_at():
    with pytest.raises(NotApplicable):
        RULE.from_underflow(underflow([0.4], steps=2))
