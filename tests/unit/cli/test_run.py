"""What the command line of `diagnose run` takes, and what it refuses before anything is run."""

import subprocess
import sys

import pytest

from diagnostics.cli.run import split


class TestBadInput:
    def refused(self, tmp_path, *arguments):
        ended = subprocess.run(
            [sys.executable, "-m", "diagnostics", "run", *arguments],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ended.returncode, ended.stdout) == (2, "")
        return ended.stderr.splitlines()[-1].replace(str(tmp_path), "DIR")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ([], "diagnose: nothing to run. Pass a script, or a module after -m: diagnose run train.py"),
            (["trian.py"], "diagnose: there is no script trian.py. In that folder: train.py."),
            (["."], ("diagnose: . is a folder without a __main__.py. Pass the training script in it.")),
            (
                ["-m", "no.such"],
                "diagnose: there is no module 'no.such': python -m no.such would not find it either.",
            ),
            (["--format", "html", "train.py"], "diagnose: an HTML report needs a file: --output report.html"),
            (
                ["--output", ".", "train.py"],
                "diagnose: --output was given ., which is a folder. Pass a file name.",
            ),
            (
                ["--output", "no/r.json", "train.py"],
                "diagnose: --output was given no/r.json, but there is no folder DIR/no.",
            ),
            (
                ["--max-steps", "0", "train.py"],
                "diagnose run: error: argument --max-steps: '0' is not a number of steps, 1 or more",
            ),
            (
                ["--time-limit", "soon", "train.py"],
                "diagnose run: error: argument --time-limit: 'soon' is not a number of seconds above 0",
            ),
            (["--max-step=3", "train.py"], "diagnose: error: unrecognized arguments: --max-step=3"),
            (
                ["--ignore", "lost-plateau", "train.py"],
                "diagnose: --ignore names 'lost-plateau', but there is no such rule. Did you mean loss-plateau?",
            ),
        ],
    )
    def test_says_what_was_given_and_what_to_do_and_runs_nothing(self, tmp_path, arguments, said):
        (tmp_path / "train.py").write_text("print('ran')")
        assert self.refused(tmp_path, *arguments) == said


class TestSplit:
    @pytest.mark.parametrize(
        ("given", "mine", "theirs"),
        [
            (["run", "train.py", "--format", "x"], ["run", "train.py"], ["--format", "x"]),
            (["run", "--format", "json", "train.py", "-m"], ["run", "--format", "json", "train.py"], ["-m"]),
            (["run", "--format=json", "train.py", "--", "a"], ["run", "--format=json", "train.py"], ["--", "a"]),
            (["run", "--quiet", "-m", "pkg.train", "-m", "x"], ["run", "--quiet", "-m", "pkg.train"], ["-m", "x"]),
            (["run", "-mpkg", "train.py"], ["run", "-mpkg"], ["train.py"]),
            (["run"], ["run"], []),
            (["run", "--help"], ["run", "--help"], []),
            (["explain", "-"], ["explain", "-"], []),
            ([], [], []),
        ],
    )
    def test_leaves_the_script_what_is_the_scripts(self, given, mine, theirs):
        assert split(given) == (mine, theirs)
