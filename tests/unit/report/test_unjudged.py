import numpy as np
import pytest

from diagnostics.engine.finding import Finding
from diagnostics.facts.crash import CrashFacts
from diagnostics.report.contents import StageResult
from diagnostics.report.report import Report
from diagnostics.report.unjudged import not_judged
from tests.support.courses import history

MANY = {
    **{f"a-{letter}": "needs a copy trained on one batch" for letter in "abcd"},
    "overfitting": "needs the losses of evaluations",
    "x": "needs a model that computes in float16",
    "y": "needs 400 steps",
}
CRASH = CrashFacts("RuntimeError", "…", (), live=True)
WARNING = Finding("z", "warning", "data", "…", "…")
DATASET = StageResult("dataset", "passed", "40 rows, 40 read")
FALLING, FLAT = history(np.linspace(2, 0.1, 100)), history(np.full(100, 2.0))


class TestAlways:
    def test_nothing_is_said_where_all_were_judged(self):
        assert not_judged(Report("ran")) == ""

    def test_few_are_named(self):
        assert not_judged(Report("ran", not_applicable={"b": "…", "a": "…"})) == "Not checked: a, b."

    def test_all_are_named_with_their_reasons_where_that_is_asked_for(self):
        report = Report("ran", not_applicable={"b": "needs a metric", "a": "needs 4 steps"}, verbose=True)
        assert not_judged(report) == "Not checked:\n  a: needs 4 steps\n  b: needs a metric"

    def test_after_a_failure_it_only_counts(self):
        crashed = Report("ran", not_applicable=MANY, crash=CRASH, script="train.py")
        assert not_judged(crashed) == "7 rules could not be checked before the failure; --verbose explains why."


class TestOfTheLibrary:
    def test_a_watched_run_is_told_what_to_pass(self):
        assert not_judged(Report("watched", not_applicable=MANY, history=FALLING)) == (
            "7 rules could not be checked; report.not_applicable explains why. To check more, give "
            "diagnostics.examine(...) before the training (a-a, a-b, a-c and 1 more); the losses of evaluations: "
            "watch.evaluated(loss) (overfitting); a longer run (y)."
        )

    def test_an_examination_is_not_told_to_examine(self):
        lacking = {**MANY, "leaked-evaluation-rows": "needs training and evaluation data"}
        assert not_judged(Report("examined", not_applicable=lacking)) == (
            "8 rules could not be checked; report.not_applicable explains why. To check more, give "
            "evaluation data that can be read (leaked-evaluation-rows)."
        )


class TestOfAScript:
    def said(self, course=FLAT, *, findings=(), stages=(DATASET,), judged=frozenset(), **reasons):
        lacking = {**MANY, **{name.replace("_", "-"): why for name, why in reasons.items()}}
        report = Report("ran", findings, stages, lacking, judged, history=course, script="train.py")
        return not_judged(report)

    def test_one_that_did_not_learn_in_few_steps_is_to_run_longer(self):
        said = self.said(loss_plateau="needs 400 steps", not_learning="needs 100 steps", judged={"overfitting"})
        assert said == "To check more, train for 400 steps or more, not 100 (loss-plateau)."

    @pytest.mark.parametrize("steps", [12, 100])
    def test_one_that_learned_is_not(self, steps):
        falling = history(np.linspace(2, 0.1, steps))
        assert self.said(falling, loss_plateau="needs 400 steps", judged={"overfitting"}) == ""

    @pytest.mark.parametrize(
        ("course", "told"),
        [
            (
                FALLING,
                "To check more, evaluate the model on rows that it is not trained on (leaked-evaluation-rows).",
            ),
            (FLAT, ""),
            (history(np.linspace(2, 0.1, 100), no_grad_passes=8), ""),
        ],
        ids=["learned", "did not learn", "evaluates"],
    )
    def test_one_that_learned_is_to_be_evaluated(self, course, told):
        assert self.said(course, leaked_evaluation_rows="needs training and evaluation data") == told

    def test_one_that_makes_its_own_rows_is_not(self):
        said = self.said(FALLING, stages=(), leaked_evaluation_rows="needs training and evaluation data")
        assert said == ""

    def test_an_evaluation_without_a_loss_is_to_compute_one(self):
        evaluated = history(np.linspace(2, 0.1, 100), no_grad_passes=8)
        said = self.said(evaluated, evaluation_at_chance="needs an evaluation that computes the loss")
        assert said == "To check more, compute the loss in the evaluation, too (evaluation-at-chance)."

    @pytest.mark.parametrize(
        ("detail", "told"),
        [
            ("stopped after 1 s", "To check more, pass --second-look 60 (examples-mixed)."),
            ("interrupted", ""),
            ("the model cannot be copied (Net)", ""),
        ],
    )
    def test_a_second_look_that_was_too_short_is_to_take_longer(self, detail, told):
        looked = StageResult("second look", "not judged", detail)
        said = self.said(stages=(looked,), examples_mixed="needs what the predictions depend on")
        assert said == told

    def test_what_was_found_comes_first(self):
        assert self.said(findings=(WARNING,), loss_plateau="needs 400 steps") == ""
