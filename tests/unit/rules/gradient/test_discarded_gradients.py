import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import StepOrderFacts, TapesWithoutGradient
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


def test_fires_on_tapes_that_no_gradient_is_taken_from():
    finding = DiscardedGradients().from_tapes(TapesWithoutGradient(steps=10, tapes=490, fewest=49))
    assert (finding.rule, finding.severity) == ("discarded-gradients", "warning")
    assert finding.message == (
        "490 of 500 tapes recorded a pass and were asked for no gradient: before each of the 10 steps there were "
        "49 or more of them, and the step used the gradients of the last batch alone. The other batches teach "
        "nothing."
    )


def test_silent_on_a_tape_that_only_measures():
    assert DiscardedGradients().from_tapes(TapesWithoutGradient(steps=10, tapes=10, fewest=1)) is None
    with pytest.raises(NotApplicable, match="3 steps"):
        DiscardedGradients().from_tapes(TapesWithoutGradient(steps=2, tapes=98, fewest=49))
