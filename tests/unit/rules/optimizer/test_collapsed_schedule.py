import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import Verdicts
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import OptimizerFacts
from diagnostics.rules.optimizer.collapsed_schedule import CollapsedSchedule
from tests.support.courses import history, judge

RULE = CollapsedSchedule()
STALLED = np.full(400, 1.4)


def rates(of_step, count=400):
    return np.array([of_step(step) for step in range(count)])


class TestFires:
    def test_on_a_decay_by_epochs_that_is_stepped_by_batches(self):
        finding = judge(RULE.from_steps, history(STALLED, rates=rates(lambda step: 0.1 * 0.5**step)))
        assert (finding.rule, finding.severity, finding.step) == ("collapsed-schedule", "warning", 10)

    def test_after_a_warm_up(self):
        schedule = rates(lambda step: 1e-3 * (step / 100 if step < 100 else 0.1 ** (step - 100)))
        assert judge(RULE.from_steps, history(STALLED, rates=schedule)).step == 104

    def test_on_a_factor_that_compounds_by_epochs(self):
        course = history(STALLED, rates=rates(lambda step: 1e-3 * 0.5 ** sum(range(step // 20 + 1))))
        finding = judge(RULE.from_steps, course)
        assert finding.fix == "call scheduler.step() once per epoch, outside the loop over the batches"
        compounds = "compute each rate from the initial rate: initial_rate * factor**epoch"
        assert finding.alternatives[0].startswith(compounds)
        assert finding.for_library("keras").fix.startswith(compounds)

    def test_on_a_schedule_stepped_after_each_of_the_passes_that_a_step_accumulates(self):
        course = history(STALLED, rates=rates(lambda step: max(0, 0.01 * (1 - step / 50))), passes=np.full(400, 8))
        finding = judge(RULE.from_steps, course)
        assert "follows 8 forward passes" in finding.message
        assert finding.fix == "call scheduler.step() only where optimizer.step() is called"

    def test_where_the_loss_is_not_known(self):
        assert judge(RULE.from_steps, history(None, steps=400, rates=rates(lambda step: 0.8**step))) is not None


class TestSilent:
    @pytest.mark.parametrize(
        "of_step",
        [
            lambda step: 0.1,
            lambda step: 0.1 * (1 - step / 400),
            lambda step: 0.05 * (1 + np.cos(np.pi * step / 400)),
            lambda step: 0.1 * 0.1 ** (step // 100),
            lambda step: 0.1 * 0.98**step,
            lambda step: 0.1 * 0.9 ** (step // 10),
            lambda step: 0.1 * 0.1 ** (step // 50),
            lambda step: 0.1 * 0.1 ** ((step > 20) + (step > 35) + (step > 80) + (step > 95)),
            lambda step: 0.05 * (1 + np.cos(np.pi * (step % 50) / 50)),
            lambda step: 1e-6 if step < 200 else 1e-2,
        ],
        ids=[
            "constant",
            "linear",
            "cosine",
            "by ten at milestones",
            "slow decay",
            "by epochs",
            "on plateaus",
            "on plateaus early",
            "restarts",
            "late start",
        ],
    )
    def test_on_schedules_that_are_meant(self, of_step):
        assert judge(RULE.from_steps, history(STALLED, rates=rates(of_step))) is None

    def test_where_there_was_nothing_left_to_learn(self):
        learned = np.geomspace(1.4, 1e-3, 400)
        schedule = rates(lambda step: 0.1 if step < 180 else 1e-9)
        assert judge(RULE.from_steps, history(learned, rates=schedule)) is None
        assert judge(RULE.from_steps, history(STALLED, rates=schedule)) is not None


@pytest.mark.parametrize("course", [history(np.ones(49)), history(np.ones(400), rates=np.nan)])
def test_not_applicable_without_the_rates_of_enough_steps(course):
    with pytest.raises(NotApplicable):
        judge(RULE.from_steps, course)


def in_epochs(of_step, rows=32 * 40, found=(), losses=STALLED):
    """Judge a run of 400 steps of 32 rows; an epoch has 40 steps unless another number of rows is given."""
    verdicts = Verdicts(frozenset(found), frozenset())
    dataset = DatasetFacts(size=rows, rows_read=0)
    return judge(RULE.from_epochs, history(losses, rates=rates(of_step)), dataset, verdicts)


class TestEpochs:
    def test_fires_on_a_staircase_within_epochs_that_leaves_under_two_thirds_of_the_run(self):
        by_steps = rates(lambda step: 0.05 * 0.8 ** (step // 6))
        assert judge(RULE.from_steps, history(STALLED, rates=by_steps)) is None
        finding = in_epochs(lambda step: 0.05 * 0.8 ** (step // 6))
        assert finding.fix == "call scheduler.step() once per epoch, outside the loop over the batches"
        assert (
            "The rate falls at every step, but an epoch has 40 steps."
            in in_epochs(lambda step: 0.05 * 0.96**step).message
        )

    @pytest.mark.parametrize(
        ("of_step", "rows"),
        [
            (lambda step: 0.05 * 0.8 ** (step // 6), 32 * 6),
            (lambda step: 0.05 * 0.975**step, 32 * 40),
            (lambda step: 0.1 * (1 - step / 400), 32 * 40),
            (lambda step: 0.05 * (1 + np.cos(np.pi * step / 400)), 32 * 40),
            (lambda step: 0.05 * (1 + np.cos(np.pi * (step % 50) / 50)), 32 * 40),
        ],
        ids=["once an epoch", "late", "linear", "cosine", "restarts"],
    )
    def test_silent_on_schedules_that_are_meant(self, of_step, rows):
        assert in_epochs(of_step, rows) is None

    def test_silent_where_it_is_said_or_nothing_was_left_to_learn(self):
        falls = {"of_step": lambda step: 0.05 * 0.8 ** (step // 6)}
        assert in_epochs(**falls, found=["collapsed-schedule"]) is None
        assert in_epochs(**falls, losses=np.geomspace(1.4, 1e-3, 400)) is None
        with pytest.raises(NotApplicable, match="needs the number of training rows"):
            in_epochs(**falls, rows=None)


def factor(full, of_step):
    held = OptimizerFacts("Adam", (full,), {}, held=4, foreign=0, full_rate=full)
    return judge(RULE.from_factor, history(STALLED, rates=rates(of_step)), held)


class TestFactor:
    def test_fires_on_a_function_that_returns_the_rate(self):
        finding = factor(1e-3, lambda step: 1e-6 * (1 - step / 400))
        assert (finding.rule, finding.severity) == ("collapsed-schedule", "warning")
        assert factor(0.02, lambda step: 4e-4 * 0.9 ** (step // 50)) is not None
        assert factor(1e-3, lambda step: 1e-7).severity == "warning"

    @pytest.mark.parametrize(
        ("full", "of_step"),
        [
            (1.0, lambda step: 5e-4),
            (1e-3, lambda step: 1e-6 * (1 + step)),
            (1e-3, lambda step: 1e-3 * 0.99**step),
            (1e-3, lambda step: 1e-5),
        ],
        ids=["rates themselves", "a warm-up", "factors", "a hundredth"],
    )
    def test_is_silent(self, full, of_step):
        assert factor(full, of_step) is None
