import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.layers import RoundingFacts
from diagnostics.rules.numerics.update_below_precision import UpdateBelowPrecision
from tests.support.courses import history, judge

RULE = UpdateBelowPrecision()


def sample(
    moved=0, *, optimizer="AdamW", dtype="bfloat16", last=280, samples=16, given=None, weight=0.1, size=1e-3
):
    which = np.arange(500) < moved
    with_gradient = np.full(500, samples) if given is None else np.where(np.arange(500) < given, samples, 0)
    numbers = np.full(500, weight, np.float32), which, with_gradient, np.full(500, size, np.float32)
    return RoundingFacts(dtype, optimizer, ("0", "2"), 0, last, samples, *numbers)


def run(rate=1e-5, ends=1.3):
    return history(np.linspace(1.4, ends, 300), rates=rate)


class TestFires:
    def test_on_weights_that_never_change(self):
        finding = judge(RULE.from_sample, sample(moved=10), run())
        assert (finding.rule, finding.severity, finding.step) == ("update-below-precision", "warning", 280)

    def test_on_sgd_by_its_gradients(self):
        assert judge(RULE.from_sample, sample(optimizer="SGD"), run(rate=1e-2)).severity == "warning"

    def test_as_a_note_where_the_loss_fell_all_the_same(self):
        finding = judge(RULE.from_sample, sample(), run(ends=0.1))
        assert finding.severity == "note"


class TestSilent:
    def test_where_many_weights_move(self):
        assert judge(RULE.from_sample, sample(moved=60), run()) is None

    def test_where_updates_are_larger_than_the_spacing(self):
        assert judge(RULE.from_sample, sample(), run(rate=1e-3)) is None
        assert judge(RULE.from_sample, sample(optimizer="SGD", size=1.0), run(rate=1e-2)) is None

    def test_on_small_weights_which_move_by_less(self):
        assert judge(RULE.from_sample, sample(weight=1e-3), run()) is None

    def test_at_a_rate_of_0(self):
        assert judge(RULE.from_sample, sample(), run(rate=0.0)) is None


@pytest.mark.parametrize("few", [{"last": 40}, {"samples": 3}, {"given": 50}], ids=str)
def test_not_applicable_to_little(few):
    with pytest.raises(NotApplicable):
        judge(RULE.from_sample, sample(**few), run())
