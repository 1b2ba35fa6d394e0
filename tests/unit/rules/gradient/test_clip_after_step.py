import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import ClipFacts
from diagnostics.facts.where import Where
from diagnostics.rules.gradient.clip_after_step import ClipAfterStep
from tests.support.courses import history, judge

RULE = ClipAfterStep()


def clips(useless=200, in_time=0, *, function="clip_grad_norm_", norms=(3.0, 0.2), cleared=False, limit=0.5):
    where = Where("train.py", 21, "<module>")
    return ClipFacts(function, limit, in_time, useless, np.array(norms, float), cleared, where)


def run(norms=1.0, **known):
    return history(np.ones(200), gradient_norms=np.full(200, norms, np.float32), **known)


class TestFires:
    def test_on_clipping_after_the_step(self):
        finding = judge(RULE.from_calls, clips(), run())
        assert (finding.rule, finding.severity) == ("clip-after-step", "warning")
        assert str(finding.where) == "train.py:21"

    def test_on_clipping_before_the_backward_pass(self):
        finding = judge(RULE.from_calls, clips(norms=(0.0, 0.0), cleared=True), run())
        assert finding.severity == "warning"

    def test_on_values_whose_size_is_not_known(self):
        finding = judge(RULE.from_calls, clips(function="clip_grad_value_", norms=()), run())
        assert finding.severity == "warning"

    def test_as_a_note_where_nothing_was_to_be_clipped(self):
        finding = judge(RULE.from_calls, clips(limit=5.0), run())
        assert finding.severity == "note"


class TestSilent:
    def test_on_clipping_in_time(self):
        assert judge(RULE.from_calls, clips(useless=0, in_time=200), run()) is None

    def test_where_it_is_clipped_again_only_to_measure(self):
        assert judge(RULE.from_calls, clips(useless=200, in_time=200), run()) is None

    def test_where_gradients_pile_up_so_that_clipping_has_an_effect(self):
        kept = np.zeros(200, np.int8)
        assert judge(RULE.from_calls, clips(), run(gradients_zeroed=kept)) is None


def test_not_applicable_to_a_call_or_two():
    with pytest.raises(NotApplicable):
        judge(RULE.from_calls, clips(useless=2), run())
