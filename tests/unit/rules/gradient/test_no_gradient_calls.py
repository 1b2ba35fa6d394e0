import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import StepOrderFacts
from diagnostics.rules.gradient.no_gradient import NoGradient
from tests.support.courses import history, judge

RULE = NoGradient()


def order(steps=200, cleared=0, without_backward=0):
    return StepOrderFacts(steps, cleared, without_backward, steps, steps, False)


def run(norms=None):
    known = np.full(200, norms is not None)
    return history(np.ones(200), gradient_norms=np.full(200, norms or 0.0, np.float32), gradient_known=known)


class TestFires:
    def test_on_gradients_cleared_before_the_step(self):
        finding = judge(RULE.from_calls, order(cleared=200), run())
        assert (finding.rule, finding.severity) == ("no-gradient", "error")

    def test_on_gradients_set_to_0(self):
        assert judge(RULE.from_calls, order(cleared=199), run(norms=1e-30)) is None
        assert judge(RULE.from_calls, order(cleared=199), run(norms=0.0)) is not None

    def test_on_a_backward_pass_outside_of_the_loop(self):
        assert judge(RULE.from_calls, order(without_backward=190), run()).severity == "error"


class TestSilent:
    def test_on_the_usual_order(self):
        assert judge(RULE.from_calls, order(), run(norms=0.3)) is None

    def test_on_gradients_that_the_script_computes_by_other_means(self):
        assert judge(RULE.from_calls, order(without_backward=200), run(norms=0.3)) is None

    def test_where_some_steps_lack_gradients(self):
        assert judge(RULE.from_calls, order(without_backward=50), run(norms=0.3)) is None


def test_not_applicable_to_a_step_or_two():
    with pytest.raises(NotApplicable):
        judge(RULE.from_calls, order(steps=2, cleared=2), run())
