import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import StepOrderFacts, TapesWithoutGradient
from diagnostics.facts.where import Where
from diagnostics.rules.gradient.discarded_gradients import DiscardedGradients

RULE = DiscardedGradients()


def order(discarded, steps=50, passes=400):
    where = Where("train.py", 20, "train") if discarded else None
    return StepOrderFacts(steps, 0, 0, passes, passes, True, discarded, where)


def test_fires_where_each_batch_clears_the_gradients():
    finding = RULE.from_calls(order(350))
    assert (finding.rule, finding.severity, str(finding.where)) == (
        "discarded-gradients",
        "warning",
        "train.py:20 in train",
    )


@pytest.mark.parametrize("discarded", [0, 3, 40])
def test_silent_on_accumulation_and_on_a_batch_left_out_now_and_then(discarded):
    assert RULE.from_calls(order(discarded)) is None


def test_not_applicable_to_a_few_steps():
    with pytest.raises(NotApplicable):
        RULE.from_calls(order(7, steps=1))


def test_fires_on_tapes_that_no_gradient_is_taken_from():
    finding = DiscardedGradients().from_tapes(TapesWithoutGradient(steps=10, tapes=490, fewest=49))
    assert (finding.rule, finding.severity) == ("discarded-gradients", "warning")


def test_silent_on_a_tape_that_only_measures():
    assert DiscardedGradients().from_tapes(TapesWithoutGradient(steps=10, tapes=10, fewest=1)) is None
    with pytest.raises(NotApplicable):
        DiscardedGradients().from_tapes(TapesWithoutGradient(steps=2, tapes=98, fewest=49))
