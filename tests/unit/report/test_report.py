"""A report: its JSON contract, its text at 100 columns, and what it can be asked."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from diagnostics import Finding, FindingsPresent, InvalidInput, Report
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.where import Where
from diagnostics.report.contents import StageResult
from tests.support.courses import history

ERROR = Finding(
    rule="labels-out-of-range",
    severity="error",
    stage="model",
    message=(
        "The labels run from 0 to 2, so there are at least 3 classes, but the model ends in 2 outputs. 11 of the "
        "32 labels in this batch are out of range (2)."
    ),
    fix="AutoModelForSequenceClassification.from_pretrained(..., num_labels=3)",
    evidence={"lowest_label": 0, "highest_label": 2, "num_outputs": 2},
    where=Where("train.py", 31, "main"),
)
WARNING = Finding(
    rule="unreached-parameters",
    severity="warning",
    stage="gradient",
    message="3 of the 40 trainable parameters get no gradient.",
    fix="use their result in the loss",
    step=7,
)
NOTE = Finding(rule="mostly-padding", severity="note", stage="data", message="61% is padding.", fix="pad less")
FRAMES = (
    FrameFacts("train.py", 31, "main", "loss = criterion(logits, labels)", yours=True),
    FrameFacts("torch/nn/functional.py", 3526, "cross_entropy", "return torch._C._nn.cross_entropy_loss("),
)
CRASH = CrashFacts("IndexError", "Target 2 is out of bounds.\nand more", FRAMES, live=True)
STAGES = (
    StageResult("dataset", "passed", "40 rows, 40 read; a model of 163 parameters"),
    StageResult("batch", "not judged", "no data"),
    StageResult("forward and loss", "stopped", "outputs (32, 2)"),
    StageResult("backward", "not reached"),
    StageResult("optimizer step", "not reached"),
)


class TestOrder:
    def test_errors_come_first_then_warnings_then_notes_each_in_the_order_found(self):
        other = Finding("ignores-input", "error", "model", "…", "…")
        report = Report("examined", (NOTE, WARNING, ERROR, other))
        assert report.findings == (ERROR, other, WARNING, NOTE)


class TestOk:
    @pytest.mark.parametrize(
        ("report", "ok"),
        [
            (Report("examined"), True),
            (Report("examined", (NOTE,)), True),
            (Report("examined", (WARNING,)), False),
            (Report("examined", (ERROR,)), False),
            (Report("examined", stages=(StageResult("dataset", "failed"),)), False),
            (Report("examined", stages=(StageResult("dataset", "not judged"),)), True),
            (Report("explained", crash=CRASH), False),
            (Report("examined", faults=("a rule failed",)), True),
        ],
        ids=["empty", "note", "warning", "error", "failed stage", "unjudged stage", "crash", "fault of ours"],
    )
    def test_says_that_nothing_of_warning_or_above_was_found_and_all_could_run(self, report, ok):
        assert report.ok is ok


class TestRaiseIf:
    @pytest.mark.parametrize(
        ("findings", "severity", "named"),
        [
            ((ERROR, WARNING, NOTE), "error", "labels-out-of-range"),
            ((ERROR, WARNING, NOTE), "warning", "labels-out-of-range, unreached-parameters"),
            ((ERROR, WARNING, NOTE), "note", "labels-out-of-range, unreached-parameters, mostly-padding"),
            ((NOTE,), "note", "mostly-padding"),
        ],
    )
    def test_raises_with_the_names_and_the_whole_report(self, findings, severity, named):
        report = Report("examined a Sequential", findings)
        with pytest.raises(FindingsPresent) as raised:
            report.raise_if(severity)
        assert str(raised.value) == f"examined a Sequential: {named}\n\n{report}"

    @pytest.mark.parametrize(("findings", "severity"), [((), "note"), ((NOTE,), "warning"), ((WARNING,), "error")])
    def test_is_silent_below_the_severity(self, findings, severity):
        Report("examined", findings).raise_if(severity)

    def test_asks_about_errors_unless_told(self):
        Report("examined", (WARNING,)).raise_if()
        with pytest.raises(FindingsPresent):
            Report("examined", (ERROR,)).raise_if()

    def test_refuses_an_unknown_severity(self):
        with pytest.raises(InvalidInput) as raised:
            Report("examined").raise_if("fatal")
        assert str(raised.value) == "raise_if() was given 'fatal'; it takes one of: error, warning, note."


class TestJson:
    def test_has_the_layout_that_programs_rely_on(self):
        report = Report(
            "explained an exception",
            (NOTE, ERROR),
            not_applicable={"ragged-batch": "needs RaggedColumns", "class-imbalance": "needs DatasetFacts"},
            crash=CRASH,
            script="train.py",
            exit_code=1,
        )
        assert json.loads(report.to_json()) == {
            "version": 1,
            "script": "train.py",
            "exit_code": 1,
            "ok": False,
            "title": "explained an exception",
            "stages": [],
            "findings": [
                {
                    "rule": "labels-out-of-range",
                    "severity": "error",
                    "stage": "model",
                    "message": ERROR.message,
                    "evidence": {"lowest_label": 0, "highest_label": 2, "num_outputs": 2},
                    "where": {"file": "train.py", "line": 31, "function": "main"},
                    "step": None,
                    "fix": ERROR.fix,
                    "page": "rules/labels-out-of-range",
                    "alternatives": [],
                    "consequences": [],
                    "other_trainings": 0,
                },
                {
                    "rule": "mostly-padding",
                    "severity": "note",
                    "stage": "data",
                    "message": "61% is padding.",
                    "evidence": {},
                    "where": None,
                    "step": None,
                    "fix": "pad less",
                    "page": "rules/mostly-padding",
                    "alternatives": [],
                    "consequences": [],
                    "other_trainings": 0,
                },
            ],
            "not_applicable": ["class-imbalance", "ragged-batch"],
            "reasons": {"class-imbalance": "needs DatasetFacts", "ragged-batch": "needs RaggedColumns"},
            "answers": [],
            "crash": {
                "exception": "IndexError",
                "message": "Target 2 is out of bounds.\nand more",
                "frames": [
                    {
                        "file": "train.py",
                        "line": 31,
                        "function": "main",
                        "code": "loss = criterion(logits, labels)",
                        "yours": True,
                    },
                    {
                        "file": "torch/nn/functional.py",
                        "line": 3526,
                        "function": "cross_entropy",
                        "code": "return torch._C._nn.cross_entropy_loss(",
                        "yours": False,
                    },
                ],
            },
            "faults": [],
            "ignored": {},
            "ignored_in_vain": [],
            "known": [],
            "settings": [],
            "rank": None,
            "library_messages": [],
            "time": None,
            "fingerprint": None,
        }

    def test_of_a_walk_lists_the_stages(self):
        stages = json.loads(Report("examined", stages=STAGES[:1]).to_json())["stages"]
        assert stages == [
            {"name": "dataset", "status": "passed", "detail": "40 rows, 40 read; a model of 163 parameters"}
        ]

    def test_holds_numbers_that_json_has_no_word_for_as_text(self):
        infinite = Finding(
            "x", "note", "data", "…", "…", evidence={"loss": float("inf"), "gap": [float("nan"), 1.5]}
        )
        evidence = json.loads(Report("examined", (infinite,)).to_json(), parse_constant=pytest.fail)
        assert evidence["findings"][0]["evidence"] == {"loss": "inf", "gap": ["nan", 1.5]}


TEXT = (
    "examined a Sequential with a DataLoader\n✓  dataset           40 rows, 40 read; a model of 163 parameters\n"
    "-  batch             no data\n✗  forward and loss  outputs (32, 2)\n·  not reached       backward, optimizer "
    "step\n\nerror: labels-out-of-range                                                       train.py:31 in "
    "main\n  The labels run from 0 to 2, so there are at least 3 classes, but the model ends in 2 outputs. "
    "11\n  of the 32 labels in this batch are out of range (2).\n  fix: "
    "AutoModelForSequenceClassification.from_pretrained(..., num_labels=3)\n  read: diagnose rules "
    "labels-out-of-range\n\nwarning: unreached-parameters                                                      "
    "           step 7\n  3 of the 40 trainable parameters get no gradient.\n  fix: use their result in the "
    "loss\n  read: diagnose rules unreached-parameters\n\nnote: mostly-padding\n  61% is padding.\n  fix: pad "
    "less\n  read: diagnose rules mostly-padding\n\n1 error, 1 warning, 1 note.\nNot checked: class-imbalance, "
    "ragged-batch.\nError in diagnostics itself, not in your program: the rule ignores-input failed: "
    "ZeroDivisionError:\ndivision by zero"
)


class TestText:
    def test_of_a_walk_with_everything_in_it(self):
        report = Report(
            "examined a Sequential with a DataLoader",
            (NOTE, WARNING, ERROR),
            STAGES,
            {"ragged-batch": "…", "class-imbalance": "…"},
            faults=("the rule ignores-input failed: ZeroDivisionError: division by zero",),
        )
        assert str(report) == TEXT
        assert repr(report) == TEXT
        assert max(map(len, str(report).splitlines())) <= 100

    def test_the_marks_are_explained_where_all_stages_are_shown(self):
        marks = "✓ passed   ! a finding questions this number   ~ the loss did not fall   ✗ failed"
        assert marks in str(Report("examined", stages=STAGES, verbose=True))
        assert marks not in str(Report("examined", stages=STAGES))

    def test_of_a_script_only_what_a_run_can_reach_is_named_unreached(self):
        metric = (*STAGES, StageResult("one-batch overfit", "not reached"))
        assert "one-batch overfit" in str(Report("examined", stages=metric))
        assert "one-batch overfit" not in str(Report("ran", stages=metric, script="train.py"))

    def test_of_an_exception_that_a_rule_knows(self):
        assert str(Report("explained an exception", (NOTE,), crash=CRASH)) == (
            "explained an exception\n  IndexError: Target 2 is out of bounds.\n"
            "  surfaced at torch/nn/functional.py:3526 in cross_entropy\n"
            "  your line   train.py:31 in main: loss = criterion(logits, labels)\n"
            "\nnote: mostly-padding\n  61% is padding.\n  fix: pad less\n"
            "  read: diagnose rules mostly-padding\n\n1 note."
        )

    @pytest.mark.parametrize(
        ("report", "closing"),
        [
            (Report("examined"), "Nothing found."),
            (
                Report("explained", crash=CRASH),
                ("No rule recognises this failure. The line above is the last line of your code that ran."),
            ),
            (
                Report("explained", crash=CrashFacts("KeyError", "'a'", (), True)),
                "No rule recognises this failure. Pass the whole traceback: the line that raised it tells more.",
            ),
            (
                Report("examined", stages=(StageResult("batch", "failed", "The data is empty."),)),
                "No findings, but the examination stopped early for the reason above.",
            ),
            (Report("examined", (WARNING, WARNING)), "2 warnings."),
            (
                Report("ran", script="train.py", judged=frozenset({"dead-units"})),
                "Nothing found. 1 rule could be checked.",
            ),
            (
                Report("ran", script="train.py", history=history(np.full(100, 0.7))),
                "No findings, but the loss has not fallen: no rule that could be checked explains why.",
            ),
        ],
        ids=["nothing", "unknown", "without frames", "failed", "plural", "of a run", "not learned"],
    )
    def test_ends_in_one_plain_line(self, report, closing):
        assert str(report).splitlines()[-1] == closing

    def test_what_looks_like_markup_is_shown_as_it_is(self):
        odd = Finding("x", "note", "data", "columns [bold] and :smile: differ", "batch = [red]")
        assert "columns [bold] and :smile: differ" in str(Report("examined", (odd,)))
        assert "fix: batch = [red]" in str(Report("examined", (odd,)))

    def test_fits_a_narrow_terminal(self):
        lines = self.printed(width=40)
        assert max(map(len, lines)) <= 40
        assert "labels-out-of-range" in "\n".join(lines)

    @pytest.mark.parametrize("width", [40, 80, 120])
    def test_no_line_ends_in_blanks(self, width):
        assert [line for line in self.printed(width) if line != line.rstrip()] == []

    def printed(self, width):
        buffer = io.StringIO()
        Console(file=buffer, width=width).print(Report("examined a model", (ERROR, WARNING), STAGES, crash=CRASH))
        return buffer.getvalue().splitlines()


class TestSave:
    def test_as_json_and_as_text(self, tmp_path):
        report = Report("examined", (ERROR,))
        assert report.save(tmp_path / "report.json") == tmp_path / "report.json"
        assert (tmp_path / "report.json").read_text(encoding="utf-8") == report.to_json() + "\n"
        report.save(str(tmp_path / "report.txt"))
        assert (tmp_path / "report.txt").read_text(encoding="utf-8") == f"{report}\n"

    def test_refuses_another_ending(self, tmp_path):
        with pytest.raises(InvalidInput) as raised:
            Report("examined").save("report.pdf")
        assert str(raised.value).endswith("the name must end in .txt, .json, .html, .md, .sarif.")
