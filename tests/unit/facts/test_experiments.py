"""Which change of a copy counts as the cure of a run that did not learn."""

import math

import pytest

from diagnostics.facts.experiments import MAKES_UP, ExperimentRun, Experiments


def measured(*runs, unchanged=(1.0, 1.01, 1.02), constant=1.0):
    """Return experiments; each run is (name, loss reached, breadth)."""
    return Experiments(
        tuple(ExperimentRun(losses=(1.2, 1.1), reached=reached) for reached in unchanged),
        tuple(ExperimentRun(name, reached=reached, breadth=breadth) for name, reached, breadth in runs),
        constant,
        rows=100,
        trained_rows=300,
    )


def cures(*runs, **known):
    return [run.name for run in measured(*runs, **known).cures]


def test_one_thing_put_right_comes_before_a_rate_that_gains_more():
    assert cures(("rate", 0.1, 1), ("inputs", 0.3, 0), ("adam", 0.05, 2)) == ["inputs", "rate", "adam"]


def test_a_change_that_gains_little_comes_after_one_that_gains_much():
    assert cures(("inputs", 0.8, 0), ("rate", 0.1, 1)) == ["rate", "inputs"]


def test_a_rate_that_makes_up_for_a_fault_comes_after_the_cure_of_that_fault():
    assert cures(("rate", 0.1, MAKES_UP), ("clipping", 0.8, 0)) == ["clipping", "rate"]


@pytest.mark.parametrize("reached", [0.9, math.nan, math.inf])
def test_a_change_that_is_hardly_better_than_a_constant_is_none(reached):
    assert cures(("inputs", reached, 0)) == []


def test_nothing_is_cured_if_an_unchanged_copy_learns():
    assert cures(("rate", 0.1, 1), unchanged=(1.0, 0.8, 1.0)) == []


def test_nothing_is_cured_if_an_unchanged_copy_is_not_finite():
    assert cures(("rate", 0.1, 1), unchanged=(1.0, math.nan, 1.0)) == []


def test_a_gain_within_the_distance_of_unchanged_copies_is_none():
    assert cures(("inputs", 0.7, 0), unchanged=(0.91, 1.0, 1.0)) == []
    assert cures(("inputs", 0.7, 0), unchanged=(0.99, 1.0, 1.0)) == ["inputs"]


def test_the_distance_of_losses_far_above_a_constant_does_not_count():
    found = measured(("rate", 0.1, 1), unchanged=(500.0, 90.0, 4000.0))
    assert (found.noise, [run.name for run in found.cures]) == (0.0, ["rate"])
