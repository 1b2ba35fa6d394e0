import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import StepOrderFacts
from diagnostics.facts.where import Where
from diagnostics.rules.gradient.discarded_gradients import DiscardedGradients

CHECK = DiscardedGradients().from_calls


def order(discarded, steps=50, passes=400):
    where = Where("train.py", 20, "train") if discarded else None
    return StepOrderFacts(steps, 0, 0, passes, passes, True, discarded, where)


def test_fires_where_each_batch_clears_the_gradients():
    finding = CHECK(order(350))
    assert (finding.rule, finding.severity, str(finding.where)) == (
        "discarded-gradients",
        "warning",
        "train.py:20 in train",
    )
    assert finding.message == (
        "`zero_grad()` cleared the gradients of 350 of 400 backward passes (88%) before a step had used them, and "
        "each of the 50 steps used those of its last batch alone. The gradients of the other batches are thrown "
        "away: nothing is accumulated."
    )
    assert finding.fix == "optimizer.zero_grad() only after optimizer.step(), not for every batch"


@pytest.mark.parametrize("discarded", [0, 3, 40])
def test_silent_on_accumulation_and_on_a_batch_left_out_now_and_then(discarded):
    assert CHECK(order(discarded)) is None


def test_not_applicable_to_a_few_steps():
    with pytest.raises(NotApplicable, match="needs 8 steps of an optimizer"):
        CHECK(order(7, steps=1))
