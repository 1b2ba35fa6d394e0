"""How many runs it takes to see whether one batch can be learned, told by a plan alone."""

import math

import numpy as np
import pytest

from diagnostics.collectors.shared import overfit_plan
from diagnostics.collectors.shared.overfit_plan import (
    LARGE_TRIAL_UPDATE,
    LAST_STEPS,
    OUR_RATES,
    POOL_STEPS,
    SMALL,
    SMALL_RATE,
    SMALL_STEPS,
    STEPS,
    STEPS_WITHOUT_FLOOR,
    Pool,
    Stopwatch,
    larger,
    overfit,
    pool_of,
)
from diagnostics.collectors.shared.overfit_run import Run
from diagnostics.collectors.shared.pipeline import CannotJudge
from diagnostics.facts.trials import OverfitFacts, TrialFacts

FLOOR = 1.0
LEARNS, STALLS = (1.4, 0.9, 0.4), (1.4, 1.2) + (1.1,) * 28


def walk(answers, update=None, **options):
    """Answer each plan with the next run; return the facts and the plans."""
    plans, answers = [], iter(answers)

    def run(plan):
        plans.append(plan)
        losses = next(answers)
        return Run(losses, update_ratios=(update,) * (len(losses) - 1) if update else (), output_spread=0.5)

    settings = {"floor": FLOOR, "distinct_inputs": 8, "their_rate": None, "warms_up": None, **options}
    return list(overfit(run, **settings)), plans


class TestLarger:
    @pytest.mark.parametrize(
        ("at_first", "in_the_end", "told"),
        [(0.3, 0.0, 0.3), (0.0, 0.2, 0.2), (None, 0.1, 0.1), (0.3, None, None), (math.inf, 0.1, 0.1)],
    )
    def test_is_the_one_when_they_were_further_apart_if_both_are_known(self, at_first, in_the_end, told):
        assert larger(at_first, in_the_end) == told

    @pytest.mark.parametrize("at_first", [None, 0.3, math.nan])
    def test_predictions_that_end_as_no_numbers_stay_so(self, at_first):
        assert math.isnan(larger(at_first, math.nan))


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

    def test_a_small_model_gets_a_run_of_large_steps_too(self):
        facts, plans = walk([STALLS, STALLS, STALLS, STALLS, LEARNS], num_trainable=SMALL)
        assert (plans[-1].learning_rate, plans[-1].steps) == (SMALL_RATE, SMALL_STEPS)
        assert facts == [OverfitFacts(LEARNS, (*OUR_RATES, OUR_RATES[1], SMALL_RATE), 8, 0.5)]

    @pytest.mark.parametrize("num_trainable", [None, SMALL + 1])
    def test_a_larger_model_does_not(self, num_trainable):
        _, plans = walk([STALLS, STALLS, STALLS, STALLS], num_trainable=num_trainable)
        assert [plan.steps for plan in plans] == [STEPS, STEPS, STEPS, LAST_STEPS]

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


class TestLargeSteps:
    """The user's run learned one batch, but each step changes the weights by much."""

    POOL = Pool(floor=1.1, batches=2)
    SWINGS = (1.2, 1.0) * 30

    def pooled(self, *answers, update=LARGE_TRIAL_UPDATE, **options):
        settings = {"their_rate": 1e-3, "warms_up": False, "pool": lambda: self.POOL, **options}
        facts, plans = walk([LEARNS, *answers], update, **settings)
        return facts[0], [(plan.batches, plan.factor, plan.steps) for plan in plans]

    def test_are_tried_on_several_batches_in_turn_and_so_is_a_smaller_rate(self):
        trial, plans = self.pooled(self.SWINGS, (1.2, 0.9, 0.6, 0.4))
        assert (trial.losses, trial.better_losses) == (self.SWINGS, (1.2, 0.9, 0.6, 0.4))
        assert (trial.better_rate, trial.batches, trial.constant_baseline_loss) == (pytest.approx(1e-4), 2, 1.1)
        assert plans == [(1, 1.0, STEPS), (2, 1.0, POOL_STEPS), (2, 0.1, POOL_STEPS)]

    def test_that_learn_several_batches_too_are_left_alone(self):
        trial, plans = self.pooled((1.2, 0.9, 0.6, 0.4))
        assert (trial.losses, trial.batches, len(plans)) == (LEARNS, 1, 2)

    def test_are_no_news_where_no_smaller_rate_does_better(self):
        trial, _ = self.pooled(self.SWINGS, self.SWINGS, self.SWINGS)
        assert (trial.losses, trial.batches, trial.better_rate) == (LEARNS, 1, None)

    @pytest.mark.parametrize(
        "options",
        [{"update": 0.9 * LARGE_TRIAL_UPDATE}, {"warms_up": True}, {"warms_up": None}, {"pool": lambda: None}],
    )
    def test_nothing_more_is_tried_where_it_could_not_be_judged(self, options):
        trial, plans = self.pooled(**options)
        assert (trial.losses, len(plans)) == (LEARNS, 1)

    @pytest.mark.parametrize(("pace", "runs"), [(1.9, 2), (2.1, 1)])
    def test_of_a_slow_model_are_not_followed_up(self, pace, runs):
        answers = iter([Run(LEARNS, (LARGE_TRIAL_UPDATE,) * 2, pace=pace), Run((1.2, 0.9, 0.6, 0.4))])
        plans = []

        def run(plan):
            plans.append(plan)
            return next(answers)

        list(overfit(run, floor=FLOOR, distinct_inputs=8, their_rate=1e-3, warms_up=False, pool=lambda: self.POOL))
        assert len(plans) == runs


class TestStopwatch:
    def test_leaves_the_first_step_out_for_it_may_compile(self, monkeypatch):
        clock = iter([20.0, 20.5, 21.0])
        monkeypatch.setattr(overfit_plan.time, "monotonic", lambda: next(clock))
        watch = Stopwatch()
        for _ in range(3):
            watch.step()
        assert watch.pace == 0.5

    def test_knows_no_pace_of_one_step(self):
        watch = Stopwatch()
        watch.step()
        assert watch.pace == 0.0


class TestPool:
    def test_a_floor_is_the_first_ones_and_what_the_labels_of_all_add(self):
        labels = [np.array([0, 0, 0, 1]), np.array([1, 1, 1, 0])]
        first = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
        assert pool_of(labels, first + 0.2, classes=2) == Pool(pytest.approx(math.log(2) + 0.2), 2)

    def test_one_batch_is_none(self):
        assert pool_of([np.array([0, 1])], 0.7, classes=2) is None


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
        monkeypatch.setattr(overfit_plan.time, "monotonic", lambda: next(clock))
        with pytest.raises(CannotJudge) as raised:
            walk([STALLS])
        assert str(raised.value) == "30 steps on a copy took 130 s and gave no clear result; no more were tried"

    def test_a_slow_run_that_gets_there_counts(self, monkeypatch):
        clock = iter([0.0, 0.0])
        monkeypatch.setattr(overfit_plan.time, "monotonic", lambda: next(clock))
        facts, _ = walk([LEARNS])
        assert facts[0].losses == LEARNS
