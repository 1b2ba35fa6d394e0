import numpy as np
import pytest

from diagnostics.collectors.shared.learnability import simple_fit
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import SimpleFit, TargetHistory, Verdicts
from diagnostics.rules.optimizer.not_learning import NotLearning
from diagnostics.rules.shared.learnable import is_learnable
from tests.support.courses import history, judge

RULE = NotLearning()
STUCK = np.full(200, 1.01)
FITS = SimpleFit(120, 120, 1.0, 0.2, linear=True, of_classes=False)
FAILS = SimpleFit(120, 120, 1.0, 0.98, linear=False, of_classes=False)
VERDICTS = Verdicts(frozenset(), frozenset({"unreached-parameters", "dead-units", "repeated-batch"}))


def targets(losses=STUCK, constant=1.0, fit=FITS, kind="mean_squared_error"):
    steps = np.arange(0, len(losses), 20)
    return TargetHistory(kind, steps, losses[steps], np.full(len(steps), constant), 320, 1, fit)


def course(losses=STUCK, verdicts=VERDICTS, rates=0.01, update=1e-3, **of_targets):
    return judge(
        RULE.from_course, history(losses, rates=rates, update=update), targets(losses, **of_targets), verdicts
    )


class TestFires:
    def test_where_a_simple_fit_learns_what_the_model_did_not(self):
        finding = course()
        assert (finding.rule, finding.severity, finding.step) == ("not-learning", "warning", 199)
        assert finding.message == (
            "The run ended no better than a constant prediction, which would score 1 (320 sampled targets): over "
            "the last third of its steps the mean squared error is 1.01. There is something to "
            "learn: a linear fit to 120 of the rows leaves 20% of a constant prediction's "
            "error on 120 others. Ruled out: every parameter gets a gradient, units are alive and "
            "batches differ. Not tested: a model that cannot memorise one batch, an output that ignores the "
            "input, parameters that no optimizer holds and 11 more."
        )
        assert finding.fix.startswith("train on one batch for 200 steps")

    def test_as_a_note_where_no_fit_learns_it_either(self):
        finding = course(fit=FAILS)
        assert finding.severity == "note"
        assert "Neither a linear nor a radial fit to 120 of the rows predicts 120 others" in finding.message
        assert finding.fix.startswith("print ten inputs")

    def test_as_a_note_where_inputs_are_not_known(self):
        assert course(fit=None).severity == "note"

    def test_as_a_note_while_the_loss_still_falls(self):
        finding = course(np.linspace(3, 1.1, 200))
        assert (finding.severity, finding.evidence["still_falling"]) == ("note", True)
        assert finding.fix == "train longer, or at a higher learning rate"

    @pytest.mark.parametrize(("update", "begins"), [(1e-6, "multiply"), (0.3, "divide")])
    def test_and_advises_another_rate_where_updates_are_small_or_large(self, update, begins):
        assert course(update=update).fix.startswith(begins)


class TestSilent:
    @pytest.mark.parametrize("level", [0.9, 0.5, 0.96])
    def test_on_a_run_that_ends_below_the_constant_answer(self, level):
        assert course(np.full(200, level)) is None

    def test_on_a_run_that_learns_late(self):
        assert course(np.where(np.arange(200) < 150, 1.01, 0.6)) is None


class TestNotApplicable:
    @pytest.mark.parametrize(
        "given",
        [
            {"losses": np.full(80, 1.0)},
            {"verdicts": Verdicts(frozenset(), frozenset(), complete=False)},
            {"verdicts": Verdicts(frozenset(), frozenset(), alone=False)},
            {"rates": np.linspace(0, 1, 200)},
            {"losses": np.where(np.arange(200) < 199, 1.0, np.nan)},
        ],
        ids=["short", "cut off", "two players", "warm-up", "not finite"],
    )
    def test_without_its_evidence(self, given):
        with pytest.raises(NotApplicable):
            course(**given)


def test_a_fit_to_noise_is_no_proof():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        inputs, labels = rng.normal(size=(200, 8)), np.eye(2)[rng.integers(0, 2, 200)]
        assert not is_learnable(simple_fit(inputs, labels, of_classes=True))
        assert not is_learnable(simple_fit(inputs, rng.normal(size=(200, 1)), of_classes=False))
