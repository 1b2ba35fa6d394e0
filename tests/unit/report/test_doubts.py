import pytest

from diagnostics.engine.finding import Finding
from diagnostics.facts.crash import CrashFacts
from diagnostics.report.doubts import doubted, not_judged
from diagnostics.report.report import Report, StageResult

STAGES = (
    StageResult("dataset", "passed", "40 rows"),
    StageResult("loss", "passed", "0.7 in the first step, 0.7 in the last"),
    StageResult("updates", "passed", "a step changes a layer by 0.001 of its size (median)"),
)


def finding(rule, severity, stage, **more):
    return Finding(rule, severity, stage, "…", "…", **more)


class TestDoubts:
    def test_a_warning_takes_the_tick_from_the_lines_of_its_stage(self):
        assert "updates" in doubted(Report("ran", (finding("x", "warning", "optimizer"),), STAGES))

    def test_a_note_does_not(self):
        assert doubted(Report("ran", (finding("x", "note", "optimizer"),), STAGES)) == frozenset()

    def test_a_note_on_the_course_of_the_loss_does(self):
        assert doubted(Report("ran", (finding("not-learning", "note", "optimizer"),), STAGES)) == {"loss"}

    def test_so_does_a_consequence(self):
        below = finding("loss-plateau", "warning", "optimizer")
        cause = finding("x", "error", "distributed", consequences=(below,))
        assert doubted(Report("ran", (cause,), STAGES)) == {"loss"}

    @pytest.mark.parametrize(
        ("name", "detail"),
        [
            ("loss", "0.7 in the first step, NaN in the last"),
            ("updates", "a step changes a layer by 0 of its size (median)"),
        ],
    )
    def test_numbers_may_speak_for_themselves(self, name, detail):
        assert doubted(Report("ran", (), (StageResult(name, "passed", detail),))) == {name}

    def test_the_mark_is_shown(self):
        report = Report("ran", (finding("not-learning", "warning", "optimizer"),), STAGES)
        assert "\n!  loss " in str(report)
        assert "\n✓  dataset " in str(report)


class TestNotJudged:
    MANY = {
        **{f"a-{letter}": "needs a copy trained on one batch" for letter in "abcd"},
        "overfitting": "needs the losses of evaluations",
        "x": "needs a model that computes in float16",
        "y": "needs 400 steps",
    }

    def test_few_are_named(self):
        assert not_judged(Report("ran", not_applicable={"b": "…", "a": "…"})) == "Not judged: a, b."

    def test_of_many_it_says_what_to_give(self):
        assert not_judged(Report("ran", not_applicable=self.MANY)) == (
            "7 rules could not be judged; --verbose names them. To judge more, give diagnostics.examine(...) "
            "before the training (a-a, a-b, a-c and 1 more); the losses of evaluations: watch.evaluated(loss) "
            "(overfitting); a longer run (y)."
        )

    def test_all_are_named_where_that_is_asked_for(self):
        said = not_judged(Report("ran", not_applicable=self.MANY, verbose=True))
        assert said == "Not judged: a-a, a-b, a-c, a-d, overfitting, x, y."

    def test_after_a_failure_it_only_counts(self):
        crashed = Report("ran", not_applicable=self.MANY, crash=CrashFacts("RuntimeError", "…", (), live=True))
        assert not_judged(crashed) == "7 rules could not be judged before the failure."

    def test_nothing_is_said_where_all_were_judged(self):
        assert not_judged(Report("ran")) == ""
