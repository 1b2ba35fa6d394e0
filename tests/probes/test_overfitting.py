"""How many runs it takes to see whether one batch can be learned, told by a plan alone."""

import pytest

from diagnostics.facts import OverfitFacts, TrialFacts
from diagnostics.probes import overfitting
from diagnostics.probes.overfitting import LAST_STEPS, OUR_RATES, STEPS, STEPS_WITHOUT_FLOOR, Run, overfit
from diagnostics.probes.pipeline import CannotJudge

FLOOR = 1.0
LEARNS, STALLS = (1.4, 0.9, 0.4), (1.4, 1.2) + (1.1,) * 28


def walk(answers, **options):
    """Answer each plan with the next run; return the facts and the plans."""
    plans, answers = [], iter(answers)

    def run(plan):
        plans.append(plan)
        return Run(next(answers), output_spread=0.5)

    settings = {"floor": FLOOR, "distinct_inputs": 8, "their_rate": None, "warms_up": None, **options}
    return list(overfit(run, **settings)), plans


class TestWithoutAFloor:
    @pytest.mark.parametrize("floor", [None, 0.0])
    def test_a_few_steps_only_move_the_weights(self, floor):
        facts, plans = walk([(1.0, 0.9)], floor=floor)
        assert facts == [OverfitFacts((1.0, 0.9), (OUR_RATES[0],), 8, 0.5)]
        assert [(plan.steps, plan.enough, plan.theirs) for plan in plans] == [(STEPS_WITHOUT_FLOOR, None, False)]


class TestWithOurOwnOptimizer:
    def test_the_first_rate_that_gets_there_is_the_last_tried(self):
        facts, plans = walk([STALLS, LEARNS])
        assert facts == [OverfitFacts(LEARNS, OUR_RATES[:2], 8, 0.5)]
        assert all((plan.steps, plan.enough) == (STEPS, 0.5 * FLOOR) for plan in plans)

    def test_the_best_run_is_told_if_none_gets_there(self):
        better = (1.4, 0.95)
        facts, plans = walk([STALLS, better, STALLS, STALLS])
        assert facts == [OverfitFacts(better, (*OUR_RATES, OUR_RATES[1]), 8, 0.5)]
        assert [plan.learning_rate for plan in plans] == [*OUR_RATES, OUR_RATES[1]]

    def test_before_anything_is_said_the_best_rate_gets_a_longer_run(self):
        slow = (1.4, 0.93, 0.91)
        facts, plans = walk([STALLS, STALLS, slow, LEARNS])
        assert [(plan.learning_rate, plan.steps) for plan in plans[2:]] == [(1e-2, STEPS), (1e-2, LAST_STEPS)]
        assert facts[0].losses == LEARNS

    def test_a_gain_that_no_rule_would_complain_of_ends_it(self):
        _, plans = walk([(1.4, 0.79)])
        assert len(plans) == 1

    def test_nan_is_the_worst_of_all(self):
        ((fact,), _) = walk([(float("nan"),), STALLS, STALLS, STALLS])
        assert fact.losses == STALLS


class TestWithTheUsersOptimizer:
    def test_where_it_gets_there_one_run_shows_all(self):
        facts, plans = walk([LEARNS], their_rate=3e-4, warms_up=False)
        trial, copied = facts
        assert trial == TrialFacts(3e-4, LEARNS, (), warms_up=False)
        assert copied == OverfitFacts(LEARNS, (3e-4,), 8, 0.5)
        assert [(plan.theirs, plan.factor) for plan in plans] == [(True, 1.0)]

    def test_where_it_gets_stuck_slower_ones_are_tried(self):
        facts, plans = walk([(1.4, 9.0, 7.0), LEARNS], their_rate=1.0)
        assert facts[0].better_rate == pytest.approx(0.1)
        assert facts[0].better_losses == LEARNS
        assert [plan.factor for plan in plans] == [1.0, 0.1]

    def test_where_it_hardly_moves_faster_ones_are_tried(self):
        facts, plans = walk([(1.4,) * 30, LEARNS], their_rate=1e-7)
        assert facts[0].better_rate == pytest.approx(1e-6)
        assert [plan.factor for plan in plans] == [1.0, 10.0]

    def test_where_it_is_on_its_way_ours_decide(self):
        on_its_way = (1.4, 0.9, 0.85)
        facts, plans = walk([on_its_way, LEARNS], their_rate=1e-3)
        assert (facts[0].losses, facts[0].better_rate) == (on_its_way, None)
        assert [plan.theirs for plan in plans] == [True, False]


class TestRegressionOnALargeScale:
    def test_is_asked_at_unit_scale_after_everything_else_failed(self):
        facts, plans = walk([STALLS] * 3 + [LEARNS], rescalable=True)
        assert [plan.rescaled for plan in plans] == [False, False, False, True]
        assert facts[0].losses == LEARNS
        assert facts[0].rescaled

    def test_is_not_asked_so_if_it_learns_as_it_is(self):
        facts, plans = walk([LEARNS], rescalable=True)
        assert [plan.rescaled for plan in plans] == [False]
        assert not facts[0].rescaled

    def test_other_losses_are_never_rescaled(self):
        _, plans = walk([STALLS] * 4)
        assert not any(plan.rescaled for plan in plans)


class TestSlowModels:
    def test_no_further_run_is_begun_when_the_time_is_over(self, monkeypatch):
        clock = iter([0.0, 0.0, 130.0])
        monkeypatch.setattr(overfitting.time, "monotonic", lambda: next(clock))
        with pytest.raises(CannotJudge) as raised:
            walk([STALLS])
        assert str(raised.value) == "30 steps on a copy took 130 s and did not settle it; no more were tried"

    def test_a_slow_run_that_gets_there_counts(self, monkeypatch):
        clock = iter([0.0, 0.0])
        monkeypatch.setattr(overfitting.time, "monotonic", lambda: next(clock))
        facts, _ = walk([LEARNS])
        assert facts[0].losses == LEARNS
