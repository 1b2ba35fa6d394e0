"""`diagnose`, as a person calls it."""

import json
import subprocess
import sys

import pytest

from diagnostics.__main__ import main

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/nli/train.py", line 31, in <module>
    trainer.train()
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3526, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
IndexError: Target 2 is out of bounds.
"""


class TestExplain:
    def test_names_the_rule_and_the_users_own_line_and_exits_with_1(self, tmp_path, capsys):
        file = tmp_path / "log.txt"
        file.write_text(TRACEBACK)
        assert main(["explain", str(file)]) == 1
        printed = capsys.readouterr().out
        assert "error: labels-out-of-range" in printed
        assert "/home/ada/nli/train.py:31" in printed
        assert "surfaced at torch/nn/functional.py:3526 in cross_entropy" in printed

    def test_reads_standard_input(self):
        done = subprocess.run(
            [sys.executable, "-m", "diagnostics", "explain", "-", "--format", "json"],
            input=TRACEBACK,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        report = json.loads(done.stdout)
        assert [finding["rule"] for finding in report["findings"]] == ["labels-out-of-range"]
        assert report["findings"][0]["where"] == {
            "file": "/home/ada/nli/train.py",
            "line": 31,
            "function": "<module>",
        }

    def test_exits_with_0_when_no_rule_knows_the_failure(self, tmp_path, capsys):
        file = tmp_path / "log.txt"
        file.write_text(TRACEBACK.replace("IndexError: Target 2 is out of bounds.", "KeyError: 'lr'"))
        assert main(["explain", str(file)]) == 0
        assert "No rule recognises this failure." in capsys.readouterr().out

    def test_says_which_file_cannot_be_read(self, capsys):
        assert main(["explain", "no-such-log.txt"]) == 2
        assert capsys.readouterr().err == (
            "diagnose: no-such-log.txt cannot be read: No such file or directory.\n"
        )

    def test_says_that_a_file_holds_no_traceback(self, tmp_path, capsys):
        file = tmp_path / "log.txt"
        file.write_text("epoch 1\nepoch 2\n")
        assert main(["explain", str(file)]) == 2
        assert capsys.readouterr().err == (
            "diagnose: explain() was given 2 lines without a traceback. It takes what Python printed, from "
            "'Traceback (most recent call last):' to the line that names the exception.\n"
        )


class TestRules:
    def test_lists_every_rule(self, capsys):
        assert main(["rules", "--format", "json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert {"labels-out-of-range", "ragged-batch", "untokenized-dataset"} <= {r["rule"] for r in listed}
        assert all(r["summary"].endswith(".") for r in listed)

    def test_shows_one_page(self, capsys):
        assert main(["rules", "labels-out-of-range"]) == 0
        assert "A label names a class that the model does not have." in capsys.readouterr().out

    def test_suggests_the_near_names(self, capsys):
        assert main(["rules", "label-out-of-range"]) == 2
        error = capsys.readouterr().err
        assert error.startswith(
            "diagnose: there is no rule 'label-out-of-range'. Did you mean labels-out-of-range"
        )

    def test_a_mistake_in_the_call_exits_with_2(self, capsys):
        with pytest.raises(SystemExit) as stopped:
            main(["rule"])
        assert stopped.value.code == 2
        assert "invalid choice: 'rule'" in capsys.readouterr().err
