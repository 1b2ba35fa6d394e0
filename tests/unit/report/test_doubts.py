import numpy as np
import pytest

from diagnostics.engine.finding import Finding
from diagnostics.report.contents import StageResult
from diagnostics.report.doubts import doubted
from diagnostics.report.report import Report
from tests.support.courses import history

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
        ("rule", "stage", "lines"),
        [
            ("initial-loss-off", "model", {"loss", "forward and loss"}),
            ("cannot-overfit-one-batch", "optimizer", {"one-batch overfit"}),
            ("metric-on-logits", "evaluation", {"evaluation metric"}),
            ("evaluation-at-chance", "evaluation", set()),
        ],
    )
    def test_some_rules_are_about_another_line_than_that_of_their_stage(self, rule, stage, lines):
        assert doubted(Report("ran", (finding(rule, "warning", stage),), STAGES)) == lines

    @pytest.mark.parametrize(
        ("last", "doubts"), [(0.69, {"updates", "optimizer step", "loss"}), (0.1, {"updates", "optimizer step"})]
    )
    def test_a_loss_that_did_not_fall_is_doubted_where_a_warning_may_say_why(self, last, doubts):
        ran = history(np.linspace(0.7, last, 100))
        report = Report("ran", (finding("collapsed-schedule", "warning", "optimizer"),), STAGES, history=ran)
        assert doubted(report) == doubts
        assert doubted(Report("ran", (), STAGES, history=ran)) == frozenset()

    @pytest.mark.parametrize(
        ("name", "detail"),
        [
            ("loss", "0.7 in the first step, NaN in the last"),
            ("updates", "no finite update"),
            ("updates", "a step changes a layer by 0 of its size (median)"),
            ("updates", "a step changes a layer by 2.9e-08 of its size (median)"),
        ],
    )
    def test_numbers_may_speak_for_themselves(self, name, detail):
        assert doubted(Report("ran", (), (StageResult(name, "passed", detail),))) == {name}

    def test_the_mark_is_shown(self):
        report = Report("ran", (finding("not-learning", "warning", "optimizer"),), STAGES)
        assert "\n!  loss " in str(report)
        assert "\n✓  dataset " in str(report)

    @pytest.mark.parametrize(("last", "mark"), [(0.7, "~"), (0.1, "✓")])
    def test_a_loss_that_did_not_fall_has_no_tick_where_nothing_was_found(self, last, mark):
        report = Report("ran", (), STAGES, history=history(np.linspace(0.7, last, 100)))
        assert f"\n{mark}  loss " in str(report)
