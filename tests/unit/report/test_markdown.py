"""A report as Markdown: what a forum or an issue tracker needs, and nothing private."""

import numpy as np

from diagnostics import Finding, Report
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.training import LossHistory, StepHistory, TrainingHistory
from diagnostics.facts.where import Where
from diagnostics.report.contents import StageResult

END = "*Nothing had to be left out. What remains was not read by a person: look through it before you publish it.*"
WARNING = Finding(
    rule="unreached-parameters",
    severity="warning",
    stage="gradient",
    message="2 parameters get no gradient: head.* and __table__.",
    fix="use their result in the loss",
    alternatives=("freeze them",),
    step=7,
    consequences=(Finding("loss-plateau", "warning", "optimizer", "…", "…"),),
)


def history(losses):
    count = len(losses)
    unknown = np.full(count, np.nan)
    steps = StepHistory(
        total_steps=count,
        steps=np.arange(count),
        learning_rates=np.full((count, 1), 0.1),
        training_mode=unknown,
        passes=np.ones(count),
        gradients_zeroed=unknown,
        batch_fingerprints=np.zeros(count),
        batch_sizes=np.ones(count),
    )
    return TrainingHistory(steps, LossHistory(np.arange(count), np.asarray(losses, float)))


def without_versions(text):
    before, _, after = text.partition("### Versions and devices")
    return before + after.partition("\n\n### ")[2].partition("\n\n*")[2]


class TestFindings:
    def test_whole_text(self):
        report = Report("ran train.py, 3.0 s", (WARNING,), (StageResult("batch", "passed", "input (2, 3) | x"),))
        assert without_versions(report.to_markdown()).startswith(
            "## ran train.py, 3.0 s\n\n`diagnose` found 1 warning: `unreached-parameters`.\n\n"
            "### warning: unreached-parameters, step 7\n\n"
            "2 parameters get no gradient: head.\\* and \\_\\_table\\_\\_.\n\n"
            "- Fix: use their result in the loss\n- Or: freeze them\n"
            "- It also caused: `loss-plateau`\n\n### What was looked at\n\n"
            "| stage | outcome | |\n|---|---|---|\n| batch | passed | input (2, 3) \\| x |\n\n"
        )
        assert report.to_markdown().endswith(END)

    def test_nothing_found(self):
        assert "\n\n`diagnose` found nothing.\n\n" in Report("ran train.py").to_markdown()


class TestCourse:
    def test_ten_steps_and_the_last_of_them_is_the_last(self):
        text = Report("watched", history=history(np.linspace(2, 1, 101))).to_markdown()
        table = [line for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()]
        assert len(table) == 10
        assert (table[0], table[-1]) == ("| 0 | 2 | 0.1 |", "| 100 | 1 | 0.1 |")
        assert "101 steps in all." in text

    def test_nan_is_told(self):
        assert "| 1 | nan | 0.1 |" in Report("watched", history=history([1, np.nan])).to_markdown()


class TestCode:
    def test_the_lines_around_a_finding_are_shown(self, tmp_path):
        script = tmp_path / "train.py"
        script.write_text("".join(f"step_{number}()\n" for number in range(1, 10)))
        finding = Finding("dead-units", "warning", "model", "seen", "change", where=Where(str(script), 5, "main"))
        text = Report("ran", (finding,)).to_markdown()
        assert ">    5  step_5()\n     6  step_6()" in text
        assert "step_1()" not in text
        assert str(tmp_path) not in text
        assert "`train.py`, line 5:" in text
        assert "Left out: " in text

    def test_a_file_that_is_gone_is_not_shown(self):
        finding = Finding("dead-units", "warning", "model", "seen", "change", where=Where("gone.py", 5, "main"))
        assert "The lines concerned" not in Report("ran", (finding,)).to_markdown()


class TestCrash:
    FRAMES = (FrameFacts("/home/anna/train.py", 3, "<module>", "model(batch)  # ``` in a comment", yours=True),)

    def test_traceback_is_fenced_and_of_another_machine(self):
        crash = CrashFacts("ValueError", "cannot read 'a row of text'", self.FRAMES, live=False)
        text = Report("explained the text of a traceback", crash=crash).to_markdown()
        assert (
            "````text\n"
            '  File "train.py", line 3, in <module>\n'
            "    model(batch)  # ``` in a comment\nValueError: cannot read '[13 characters]'\n"
            "````\n\nNo rule recognises this failure."
        ) in text
        assert "Versions and devices" not in text

    def test_all_is_kept_on_request(self):
        crash = CrashFacts("ValueError", "cannot read 'a row of text'", self.FRAMES, live=False)
        text = Report("explained", crash=crash).to_markdown(redact=False)
        assert '"/home/anna/train.py"' in text
        assert "'a row of text'" in text
        assert "eft out" not in text


def test_saved_by_the_ending_of_the_file(tmp_path):
    report = Report("ran train.py", (WARNING,))
    assert report.save(tmp_path / "help.md").read_text() == report.to_markdown() + "\n"


def test_control_characters_are_escaped():
    assert "\x1b" not in Report("ran \x1b[31mtrain.py").to_markdown()
