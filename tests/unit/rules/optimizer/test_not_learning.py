import dataclasses
import math
from dataclasses import replace

import numpy as np
import pytest

from diagnostics.collectors.shared.learnability import simple_fit
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import ClipFacts
from diagnostics.facts.course import (
    FinalAnswers,
    OutputScore,
    RowLedger,
    Sentinel,
    SimpleFit,
    TargetHistory,
    Verdicts,
)
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.experiments import ExperimentRun, Experiments
from diagnostics.facts.loss_call import Argument, LossCall, LossCalls
from diagnostics.facts.training import LossHistory
from diagnostics.report.html.page import finding_card
from diagnostics.rules.data.unscaled_inputs import UnscaledInputs
from diagnostics.rules.optimizer.learning_rate_too_high import LearningRateTooHigh
from diagnostics.rules.optimizer.learning_rate_too_low import LearningRateTooLow
from diagnostics.rules.optimizer.not_learning import NotLearning
from diagnostics.rules.registry import all_rules, causality_of
from diagnostics.rules.shared.learnable import is_learnable
from tests.support.courses import history, judge

RULE, CAUSALITY = NotLearning(), causality_of(all_rules())
STUCK = np.full(200, 1.01)
FITS = SimpleFit(120, 120, 1.0, 0.2, linear=True, of_classes=False)
FAILS = SimpleFit(120, 120, 1.0, 0.98, linear=False, of_classes=False)
VERDICTS = Verdicts(frozenset(), frozenset({"unreached-parameters", "dead-units", "repeated-batch"}))


def targets(losses=STUCK, constant=1.0, fit=FITS, kind="mean_squared_error", every=20):
    steps = np.arange(0, len(losses), every)
    return TargetHistory(kind, steps, losses[steps], np.full(len(steps), constant), 320, 1, fit)


def course(losses=STUCK, verdicts=VERDICTS, rates=0.01, update=1e-3, **of_targets):
    return judge(
        RULE.from_course, history(losses, rates=rates, update=update), targets(losses, **of_targets), verdicts
    )


def cut(from_norm, update):
    clips = ClipFacts("", math.nan, 200, 0, np.zeros(0), False, None, 1e-3, np.full(32, from_norm))
    run = history(STUCK, rates=0.01, update=update)
    return judge(RULE.from_course, run, targets(), VERDICTS, clips)


class TestAfterLaterTrainings:
    @pytest.mark.parametrize(("last", "severity"), [(0.1, "note"), (0.8, "warning")])
    def test_is_a_note_where_they_learned(self, last, severity):
        losses = LossHistory(np.arange(500), np.concatenate([STUCK, np.linspace(0.9, last, 300)]))
        assert RULE.after_run(course(), losses).severity == severity


class TestFires:
    def test_where_a_simple_fit_learns_what_the_model_did_not(self):
        finding = course()
        assert (finding.rule, finding.severity, finding.step) == ("not-learning", "warning", 199)

    def test_as_a_note_where_no_fit_learns_it_either(self):
        finding = course(fit=FAILS)
        assert finding.severity == "note"

    @pytest.mark.parametrize(("steps", "severity"), [(80, "note"), (200, "warning")])
    def test_as_a_note_in_a_run_of_few_steps(self, steps, severity):
        assert course(STUCK[:steps], every=10).severity == severity

    def test_but_not_where_all_labels_are_of_one_class(self):
        """As of a model that scores candidates, the right one first: no constant prediction does that."""
        assert course(kind="cross_entropy", constant=1e-7) is None

    def test_as_a_note_where_inputs_are_not_known(self):
        assert course(fit=None).severity == "note"

    @pytest.mark.parametrize(
        ("rows", "severity"),
        [
            ((RowLedger(rows=40),), "warning"),
            ((RowLedger(drawn=400, distinct=380),), "warning"),
            ((DatasetFacts(3000, 512),), "warning"),
            ((RowLedger(drawn=400, distinct=400),), "note"),
            ((DatasetFacts(3000, 512), RowLedger(drawn=400, distinct=400)), "note"),
            ((DatasetFacts(30_000, 512), RowLedger(drawn=400, distinct=400)), "note"),
            ((DatasetFacts(4000, 512),), "note"),
            ((DatasetFacts(4000, 512), RowLedger(drawn=400, distinct=390)), "note"),
        ],
        ids=["again", "few twice", "two epochs", "no two", "made up each time", "large", "one epoch", "twins"],
    )
    def test_as_a_warning_where_not_even_rows_that_come_again_are_learned(self, rows, severity):
        run = history(STUCK, rates=0.01, update=1e-3)  # 6,400 rows
        assert judge(RULE.from_course, run, targets(fit=FAILS), VERDICTS, *rows).severity == severity

    def test_as_a_warning_where_it_ends_far_above_a_constant_answer(self):
        assert course(np.full(200, 1.2), fit=FAILS).severity == "warning"
        assert course(np.full(199, 1.2), fit=FAILS).severity == "note"

    def test_and_says_how_much_of_each_gradient_was_cut_away(self):
        assert cut(from_norm=0.8, update=1e-5).severity == "warning"

    @pytest.mark.parametrize(("from_norm", "update"), [(0.05, 1e-5), (0.8, 1e-3)])
    def test_and_leaves_out_a_clipping_that_explains_nothing(self, from_norm, update):
        assert "clip" not in cut(from_norm, update).message

    def test_as_a_warning_where_rows_were_standardised_by_themselves(self):
        lost = replace(targets(fit=FAILS), rows_standardised=True)
        finding = judge(RULE.from_course, history(STUCK, rates=0.01, update=1e-3), lost, VERDICTS)
        assert finding.severity == "warning"

    def test_as_a_warning_where_a_number_stands_for_missing_ones(self):
        lost = replace(targets(fit=FAILS), sentinel=Sentinel(2, -4.3, 0.05, 9000.0))
        finding = judge(RULE.from_course, history(STUCK, rates=0.01, update=1e-3), lost, VERDICTS)
        assert finding.severity == "warning"

    def test_although_the_sampled_batches_were_harder_than_the_others(self):
        harder = targets(np.full(200, 1.06), constant=1.05)
        spread = replace(harder, constant_losses=np.tile([0.95, 1.15], 5), losses=np.tile([0.96, 1.16], 5))
        assert judge(RULE.from_course, history(np.full(200, 0.99), rates=0.01, update=1e-3), spread, VERDICTS)

    def test_as_a_note_while_the_loss_still_falls(self):
        finding = course(np.linspace(3, 1.1, 180))
        assert (finding.severity, finding.evidence["still_falling"]) == ("note", True)

    def test_as_a_warning_where_it_falls_and_is_far_above_a_constant_answer_after_many_steps(self):
        assert course(np.linspace(3, 1.1, 220)).severity == "warning"
        assert course(np.linspace(1.4, 0.95, 220)).severity == "note"

    def test_as_a_warning_where_it_falls_and_the_weights_stay(self):
        finding = course(np.linspace(3, 1.1, 180), update=2e-5)
        assert (finding.severity, finding.evidence["still_falling"]) == ("warning", True)

    @pytest.mark.parametrize("update", [1e-6, 0.3])
    def test_and_advises_another_rate_where_updates_are_small_or_large(self, update):
        assert course(update=update).severity == "warning"

    def test_and_names_a_rate_that_was_cut_before_anything_was_learned(self):
        rates = 1e-3 * 0.1 ** (np.arange(200) // 20)
        assert course(rates=rates, update=1e-6).severity == "warning"


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
            {"losses": np.full(40, 1.0), "every": 5},
            {"verdicts": Verdicts(frozenset(), frozenset(), complete=False)},
            {"verdicts": Verdicts(frozenset(), frozenset(), trained_alone=False)},
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


def score(name="style", kind="cross_entropy", error=1.39, constant=1.386, fit=None, answers=(0.2, 0.3)):
    return OutputScore(name, kind, 512, error, constant, answers, 250_000.0, 63_000.0, fit)


GOOD = score("other", error=0.3)


class TestFromAnswers:
    def test_names_the_output_that_is_far_from_its_targets(self):
        price = score("price", "mean_squared_error", 6.7e10, 4e9, answers=(0.5, 812.0))
        finding = RULE.from_answers(FinalAnswers((price, GOOD), 304))
        assert (finding.rule, finding.severity) == ("not-learning", "warning")
        assert finding.evidence["output"] == "price"

    def test_names_the_output_whose_loss_outweighs_an_unlearned_one(self):
        fit = SimpleFit(250, 250, 0.66, 0.1, linear=True, of_classes=True)
        price = score("price", "mean_squared_error", 1.1e9, 4e9, answers=(9e4, 6e5))
        finding = RULE.from_answers(FinalAnswers((price, score(error=94.0, fit=fit)), 1420))
        assert (finding.severity, finding.evidence["output"]) == ("warning", "style")
        assert finding.evidence["dominant"] == "price"
        assert "'price'" in str(finding.fix)

    @pytest.mark.parametrize(
        "change", [{"weight": 1e-9}, {"error": 0.5, "constant_error": 4.0}], ids=["weighted", "small"]
    )
    def test_names_no_output_whose_loss_is_of_the_same_size(self, change):
        price = score("price", "mean_squared_error", 1.1e9, 4e9, answers=(9e4, 6e5))
        other = dataclasses.replace(price, **change)
        finding = RULE.from_answers(FinalAnswers((other, score(fit=FITS)), 1420))
        assert (finding.evidence["output"], finding.evidence["dominant"]) == ("style", None)

    def test_names_a_penalty_that_leaves_nothing_to_learn(self):
        of_classes = SimpleFit(250, 250, 0.66, 0.1, linear=True, of_classes=True)
        finding = RULE.from_answers(FinalAnswers((score(fit=of_classes),), 320))
        assert finding.severity == "warning"

    def test_is_a_note_where_no_fit_learns_it_either(self):
        finding = RULE.from_answers(FinalAnswers((score(fit=FAILS), GOOD), 320))
        assert finding.severity == "note"

    def test_is_silent_where_all_outputs_beat_a_constant_answer(self):
        assert RULE.from_answers(FinalAnswers((GOOD, score(error=1.3)), 320)) is None

    def test_names_an_output_that_lags_behind_what_is_simple(self):
        simple = SimpleFit(250, 250, 1.86, 0.24, linear=False, of_classes=False)
        lags, learned = score(error=1.8, constant=1.854, fit=simple), score("kind", error=0.04, constant=0.7)
        lags = dataclasses.replace(lags, error=0.96 * lags.constant_error)
        finding = RULE.from_answers(FinalAnswers((learned, lags), 750))
        assert finding.severity == "warning"
        assert RULE.from_answers(FinalAnswers((learned, lags), 250)) is None
        assert RULE.from_answers(FinalAnswers((lags,), 750)) is None
        assert RULE.from_answers(FinalAnswers((learned, dataclasses.replace(lags, fit=FAILS)), 750)) is None

    def test_is_silent_on_targets_that_are_all_the_same(self):
        assert RULE.from_answers(FinalAnswers((score(error=0.0, constant=0.0),), 320)) is None

    @pytest.mark.parametrize(("steps", "statistics"), [(99, False), (499, True)])
    def test_needs_enough_steps(self, steps, statistics):
        with pytest.raises(NotApplicable):
            RULE.from_answers(FinalAnswers((score(),), steps, statistics))


def zeros(values=1e-8, whole=True, steps=150):
    arguments = {name: Argument.of(np.zeros((4, 3))) for name in ("input", "target")}
    calls = LossCalls((LossCall("kl_div", arguments, {}, 0.0, whole=whole),))
    return judge(RULE.from_zeros, calls, history(np.full(steps, values)), VERDICTS)


class TestZeros:
    def test_of_a_loss_whose_target_is_the_prediction(self):
        assert zeros().severity == "warning"

    def test_leave_a_loss_alone_that_is_small_because_it_was_learned(self):
        assert zeros(np.where(np.arange(150) < 3, 0.1, 0.0)) is None

    @pytest.mark.parametrize("given", [{"whole": False}, {"steps": 64}], ids=["a term", "short"])
    def test_need_the_whole_loss_of_a_whole_run(self, given):
        with pytest.raises(NotApplicable):
            zeros(**given)


class TestTriplets:
    CALLS = LossCalls((LossCall("triplet_margin_loss", {}, {"margin": 1.0}),))

    def test_that_end_at_their_margin(self):
        finding = judge(RULE.from_triplets, self.CALLS, history(STUCK), VERDICTS)
        assert (finding.severity, finding.evidence["margin"]) == ("warning", 1.0)

    def test_that_end_just_above_it_as_where_positives_are_negatives(self):
        above = history(np.concatenate([np.linspace(1.4, 1.05, 50), np.tile([1.02, 1.07], 75)]))
        assert judge(RULE.from_triplets, self.CALLS, above, VERDICTS).severity == "warning"

    @pytest.mark.parametrize("losses", [np.linspace(1, 0.4, 200), np.tile([0.7, 1.3], 100), np.full(200, 1.4)])
    def test_silent_where_they_come_apart_or_scatter(self, losses):
        assert judge(RULE.from_triplets, self.CALLS, history(losses), VERDICTS) is None

    @pytest.mark.parametrize(
        "call",
        [LossCall("triplet_margin_loss", {}, {"reduction": "sum"}), LossCall("mse_loss", {}, {"margin": 1.0})],
        ids=["a sum", "another loss"],
    )
    def test_not_applicable_to_other_losses(self, call):
        with pytest.raises(NotApplicable):
            judge(RULE.from_triplets, LossCalls((call,)), history(STUCK), VERDICTS)


CHANGES = {
    "inputs standardised": ("with standardised inputs", "standardise the inputs"),
    "learning rate * 100": ("at a learning rate of 0.1 instead of 0.001", "SGD(model.parameters(), lr=0.1)"),
    "learning rate / 100": ("at a learning rate of 0.1 instead of 10", "SGD(model.parameters(), lr=0.1)"),
}
"""Phrase and fix of an experiment, by name."""


def tried(name="inputs standardised", reached=0.3, breadth=0, unchanged=1.02, rule="", rate=None):
    """Return experiments in which one change was made."""
    change = ExperimentRun(name, *CHANGES[name], (1.2, 0.4), reached, rule, breadth, rate)
    without = tuple(ExperimentRun(losses=(1.2, 1.1), reached=unchanged) for _ in range(3))
    return Experiments(without, (change,), 1.0, 100, 300, {"dropout off": "there is no dropout"})


def with_experiments(measured, losses=STUCK, fit=FAILS):
    return judge(
        RULE.from_course, history(losses, rates=0.01, update=1e-3), targets(losses, fit=fit), VERDICTS, measured
    )


class TestExperiments:
    def test_make_a_note_a_warning_and_give_the_fix(self):
        finding = with_experiments(tried())
        assert (finding.severity, finding.evidence["best_experiment"]) == ("warning", "inputs standardised")
        assert finding.fixes["torch"][0] == "standardise the inputs"
        assert "training for 2 steps reaches a loss of 0.3 instead of 1.02" in finding.message
        drawn = finding_card(finding)
        assert "Loss before each step, unchanged" in drawn
        assert "dots: with standardised inputs" in drawn

    @pytest.mark.parametrize("measured", [tried(reached=0.95), tried(unchanged=0.6), tried(reached=math.nan)])
    def test_that_help_nothing_leave_the_finding_as_it_is(self, measured):
        finding, plain = with_experiments(measured), course(fit=FAILS)
        assert (finding.severity, finding.fixes) == ("note", plain.fixes)
        assert finding.evidence["best_experiment"] is None

    def test_say_nothing_of_a_run_that_learned(self):
        assert with_experiments(tried(), np.full(200, 0.5)) is None

    def test_leave_a_note_where_only_a_rate_helps_and_the_loss_still_falls(self):
        assert with_experiments(tried(breadth=1), np.linspace(3, 1.1, 180)).severity == "note"

    def test_name_the_cause_where_the_targets_of_the_run_are_not_known(self):
        run = history(STUCK, rates=0.01, update=1e-3)
        assert judge(RULE.from_experiments, run, VERDICTS, tried()).severity == "warning"
        assert judge(RULE.from_experiments, run, VERDICTS, tried(reached=0.95)) is None
        assert judge(RULE.from_experiments, history(STUCK / 2), VERDICTS, tried()) is None

    @pytest.mark.parametrize(
        ("left", "reached", "breadth", "found"),
        [(0.94, 0.5, 0, True), (0.94, 0.8, 0, False), (0.94, 0.5, 1, False), (0.88, 0.5, 0, False)],
        ids=["hardly learned", "gains little", "another rate", "learned"],
    )
    def test_judge_a_run_that_hardly_learned(self, left, reached, breadth, found):
        run = history(np.full(220, left), rates=0.01, update=1e-3)
        finding = judge(RULE.from_experiments, run, VERDICTS, tried(reached=reached, breadth=breadth))
        assert (finding is not None and "hardly learned" in finding.message) is found

    @pytest.mark.parametrize(("breadth", "explained"), [(0, False), (1, True)])
    def test_decide_whether_the_rate_is_the_cause(self, breadth, explained):
        finding = with_experiments(tried(breadth=breadth))
        rate = LearningRateTooHigh().found("it is", fix="lower it")
        assert CAUSALITY.explains(rate, finding) is explained
        assert CAUSALITY.explains(finding, rate) is not explained


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (LearningRateTooLow(), "learning rate * 100"),
        (LearningRateTooHigh(), "learning rate / 100"),
        (UnscaledInputs(), "inputs standardised"),
    ],
)
def test_a_rule_that_names_the_cause_takes_experiments_as_its_evidence(rule, name):
    finding = judge(rule.from_experiments, tried(name, rule=rule.name, rate=0.1))
    assert (finding.severity, finding.evidence["best_experiment"]) == ("warning", name)
    for other in (tried(name, rule="another"), tried(name, reached=0.95, rule=rule.name)):
        with pytest.raises(NotApplicable):
            judge(rule.from_experiments, other)


SETTLED = replace(FITS, error=0.05, linear_error=0.05)


class TestLinearFit:
    """A run that learned something, and settled."""

    def part(self, losses, *further, fit=SETTLED, outputs=1):
        sampled = replace(targets(losses, fit=fit), outputs=outputs)
        return judge(RULE.from_linear_fit, history(losses, rates=0.01, update=1e-3), sampled, VERDICTS, *further)

    def tried(self, name, reached, breadth=0):
        unchanged = tuple(ExperimentRun(losses=(1.0,), reached=reached) for reached in (0.52, 0.5))
        changed = ExperimentRun(name, f"with {name}", "do it", (1.0,), reached, breadth=breadth)
        return Experiments(unchanged, (changed,), 1.0, 100, 400, {}, 0.5)

    def test_warns_if_one_change_lets_copies_learn_the_rest(self):
        finding = self.part(np.full(220, 0.5), self.tried("no weight decay", 0.06))
        assert (finding.severity, finding.evidence["stood_at"]) == ("warning", 0.5)

    def test_is_a_note_without_experiments_or_with_a_better_rate_only(self):
        assert self.part(np.full(220, 0.5)).severity == "note"
        assert self.part(np.full(220, 0.5), self.tried("learning rate * 10", 0.06, 1)).severity == "note"
        assert self.part(np.full(220, 0.5), self.tried("no weight decay", 0.3)).severity == "note"

    def test_is_silent_if_dropout_raises_the_loss(self):
        assert self.part(np.full(220, 0.5), self.tried("dropout off", 0.06)) is None

    def test_is_silent_while_the_loss_falls(self):
        assert self.part(np.linspace(1.2, 0.3, 220)) is None

    def test_is_silent_if_a_linear_model_is_not_far_better(self):
        assert self.part(np.full(220, 0.5), fit=replace(FITS, linear_error=0.15)) is None
        assert self.part(np.full(220, 0.2)) is None

    def test_needs_one_number_for_each_row(self):
        with pytest.raises(NotApplicable):
            self.part(np.full(220, 0.5), outputs=8)
