"""`python -m bugs run`: every way in which a script can end is told apart."""

from __future__ import annotations

from typing import Any

import pytest

MODULE_LEVEL = {
    "exception": "ValueError",
    "message": "too long",
    "surfaces": "04_wrong_label_count/train.py in <module>",
    "caused": "raise",
}
SILENT: dict[str, Any] = {
    "symptom": "silent",
    "signature": {"metric": "eval_accuracy", "comparison": "<", "value": 0.4, "seen": "accuracy: 0.33"},
}


class TestVerdict:
    def test_the_declared_failure_is_reproduced(self, zoo: Any) -> None:
        script = zoo.cage()
        code, said = zoo.run("04")
        assert (code, said["ok"], said["verdict"]) == (0, True, "reproduced")
        assert said["exit_code"] == 1
        assert said["reason"] == "ValueError: Target 2 is out of bounds."
        assert said["exception"] == {
            "type": "ValueError",
            "message": "Target 2 is out of bounds.",
            "surfaced": {
                "file": "bugs/04_wrong_label_count/train.py",
                "line": 5,
                "function": "loss",
                "code": 'raise ValueError(f"Target {label} is out of bounds.")',
            },
            "called_from": {
                "file": "bugs/04_wrong_label_count/train.py",
                "line": 5,
                "function": "loss",
                "code": 'raise ValueError(f"Target {label} is out of bounds.")',
            },
        }
        assert said["script"] == script.relative_to(zoo.root).as_posix()

    def test_the_innermost_frame_and_the_call_in_the_script_are_told_apart(self, zoo: Any) -> None:
        signature = MODULE_LEVEL | {
            "exception": "JSONDecodeError",
            "message": "Expecting value",
            "surfaces": "json/decoder.py in raw_decode",
            "caused": "json",
        }
        zoo.cage(broken="import json\n\njson.loads('labels')\n", signature=signature)
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (0, "reproduced")
        surfaced, called = said["exception"]["surfaced"], said["exception"]["called_from"]
        assert (surfaced["file"], surfaced["function"]) == ("json/decoder.py", "raw_decode")
        assert (called["file"], called["line"], called["code"]) == (
            "bugs/04_wrong_label_count/train.py",
            3,
            "json.loads('labels')",
        )

    def test_memory_may_run_out_anywhere(self, zoo: Any) -> None:
        zoo.cage(
            symptom="exhausts",
            signature=MODULE_LEVEL | {"message": "out of bounds", "caused": "OUTPUTS", "surfaces": "*.py in *"},
        )
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (0, "reproduced")

    def test_of_a_chain_of_exceptions_the_last_one_counts(self, zoo: Any) -> None:
        broken = (
            "try:\n    {}['label']\nexcept KeyError as error:\n    raise ValueError('rows too long') from error\n"
        )
        zoo.cage(broken=broken, signature=MODULE_LEVEL)
        code, said = zoo.run("04")
        assert (code, said["exception"]["message"]) == (0, "rows too long")

    def test_a_message_of_several_lines_is_kept_whole(self, zoo: Any) -> None:
        broken = "raise ValueError('Unable to create tensor.\\n\\nPerhaps rows are too long\\n  (`labels`).')\n"
        zoo.cage(broken=broken, signature=MODULE_LEVEL)
        code, said = zoo.run("04")
        message = "Unable to create tensor.\n\nPerhaps rows are too long\n  (`labels`)."
        assert (code, said["exception"]["message"]) == (0, message)

    def test_progress_bars_around_the_traceback_are_not_part_of_it(self, zoo: Any) -> None:
        broken = (
            "import atexit, sys\n"
            "sys.stderr.write('\\r  0%|     | 0/60 [00:00<?, ?it/s]')\n"
            "atexit.register(lambda: sys.stderr.write('\\r  0%|     | 0/60 [00:01<?, ?it/s]\\n'))\n"
            "raise ValueError('too long')\n"
        )
        zoo.cage(broken=broken, signature=MODULE_LEVEL)
        code, said = zoo.run("04")
        assert (code, said["exception"]["message"]) == (0, "too long")
        assert said["exception"]["called_from"]["line"] == 4

    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            (
                "ValueError",
                "KeyError",
                "expected ValueError, got KeyError; expected a message with '^Target \\\\d is out of bounds'",
            ),
            ("Target", "Label", "expected a message with '^Target \\\\d is out of bounds'"),
            ("loss", "forward", "expected it to surface at 04_wrong_label_count/train.py in loss"),
        ],
    )
    def test_another_failure_is_reported_as_that(self, zoo: Any, old: str, new: str, reason: str) -> None:
        script = zoo.cage()
        script.write_text(script.read_text().replace(old, new))
        code, said = zoo.run("04")
        assert (code, said["ok"], said["verdict"]) == (1, False, "another failure")
        assert said["reason"] == reason

    def test_a_failure_that_another_cage_holds_is_recognised(self, zoo: Any) -> None:
        other = {
            "exception": "IndexError",
            "message": "rows",
            "surfaces": "train.py in <module>",
            "caused": "raise",
        }
        zoo.cage(broken="raise IndexError('rows')\n")
        zoo.cage("02_rows", title="Rows of many lengths", broken="raise IndexError('rows')\n", signature=other)
        code, said = zoo.run("04")
        assert (code, said["verdict"], said["failure_of"]) == (1, "another failure", ["02"])
        assert (
            "it is the failure of exhibit 02, Rows of many lengths: nox -s bug-02" in zoo.bugs("run", "04").stdout
        )

    def test_a_syntax_error_is_shown_as_the_readers_own(self, zoo: Any) -> None:
        zoo.cage(broken="model = (\n")
        code, said = zoo.run("04")
        assert (code, said["verdict"], said["exception"]["type"]) == (1, "another failure", "SyntaxError")
        assert said["exception"]["message"] == "'(' was never closed"

    def test_an_exit_code_without_an_exception_is_another_failure(self, zoo: Any) -> None:
        zoo.cage(broken="import sys\nprint('UserWarning: odd', file=sys.stderr)\nsys.exit(3)\n")
        code, said = zoo.run("04")
        assert (code, said["verdict"], said["exit_code"]) == (1, "another failure", 3)
        assert said["reason"] == "ended with exit code 3, and no exception was printed"

    def test_a_signal_is_named(self, zoo: Any) -> None:
        zoo.cage(broken="import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "another failure")
        assert said["reason"] == "killed by SIGKILL, perhaps for want of memory, and no exception was printed"

    def test_a_repaired_script_is_praised_but_the_cage_is_empty(self, zoo: Any) -> None:
        zoo.cage(broken="OUTPUTS = 3\nprint('eval_accuracy=0.5')\nprint('eval_accuracy=0.74')\n")
        code, said = zoo.run("04")
        assert (code, said["ok"], said["verdict"]) == (1, False, "repaired")
        assert said["reason"] == "eval_accuracy=0.74 (at least 0.5 is a recovery)"
        assert said["metrics"] == {"eval_accuracy": 0.74}

    @pytest.mark.parametrize(
        ("printed", "reason"),
        [
            ("eval_accuracy=0.31", "eval_accuracy=0.31"),
            ("eval_accuracy=nan", "eval_accuracy=nan"),
            ("the eval_accuracy=0.9 of it", "no line eval_accuracy=…"),
        ],
    )
    def test_neither_broken_nor_repaired(self, zoo: Any, printed: str, reason: str) -> None:
        zoo.cage(broken=f"print('{printed}')\n")
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "no failure")
        assert said["reason"] == f"ran to its end with {reason}; eval_accuracy at least 0.5 would be a recovery"

    def test_a_silent_bug_is_known_by_its_metric(self, zoo: Any) -> None:
        zoo.cage(broken="print('eval_accuracy=0.33')\n", **SILENT)
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (0, "reproduced")
        assert said["reason"] == "Accuracy: 0.33; eval_accuracy=0.33 (below 0.4 is the failure)"

    def test_a_silent_bug_between_failure_and_recovery_is_neither(self, zoo: Any) -> None:
        zoo.cage(broken="print('eval_accuracy=0.45')\n", **SILENT)
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "no failure")
        assert said["reason"] == (
            "ran to its end with eval_accuracy=0.45; eval_accuracy at least 0.5 would be a recovery, "
            "eval_accuracy below 0.4 the failure"
        )

    def test_a_silent_bug_that_throws_is_another_failure(self, zoo: Any) -> None:
        zoo.cage(broken="print('eval_accuracy=0.33')\nraise ValueError('late')\n", **SILENT)
        code, said = zoo.run("04")
        assert (code, said["verdict"]) == (1, "another failure")
        assert said["reason"] == "the declared failure throws nothing: eval_accuracy < 0.4"


class TestSolution:
    def test_a_solution_that_meets_its_recovery_exits_with_0(self, zoo: Any) -> None:
        zoo.cage()
        code, said = zoo.run("04", "--solution")
        assert (code, said["ok"], said["verdict"]) == (0, True, "recovered")
        assert said["script"] == "solutions/04_wrong_label_count/train.py"

    def test_a_solution_that_misses_its_recovery_exits_with_1(self, zoo: Any) -> None:
        zoo.cage(repaired="print('eval_accuracy=0.4')\n")
        code, said = zoo.run("04", "--solution")
        assert (code, said["verdict"]) == (1, "no failure")
        assert said["reason"] == (
            "ran to its end with eval_accuracy=0.4; eval_accuracy at least 0.5 would be a recovery"
        )

    def test_the_declared_failure_is_no_success_for_a_solution(self, zoo: Any) -> None:
        script = zoo.cage()
        (zoo.root / "solutions/04_wrong_label_count/train.py").write_text(script.read_text())
        code, said = zoo.run("04", "--solution")
        assert (code, said["verdict"]) == (1, "another failure")
        assert said["reason"] == "ValueError: Target 2 is out of bounds."
