"""A mistake in pyproject.toml, or a working directory that is gone, stops neither a script nor a command."""

import json
import os
import subprocess
import sys

import pytest

from diagnostics.config import of_project
from diagnostics.report.policy import Policy

SCRIPT = "import sys\nprint('ran')\nsys.exit(3)\n"
BROKEN = {
    "no TOML": b"[tool.black",
    "a number": b"[tool.diagnostics]\nignore = 5\n",
    "a list": b"[tool.diagnostics]\nignore = ['dead-units']\n",
    "a table of that name": b"[tool]\ndiagnostics = 1.5\n",
    "no reason": b"[tool.diagnostics.ignore]\ndead-units = 3\n",
    "no such rule": b"[tool.diagnostics.ignore]\nnonsense = 'x'\n",
    "no such option": b"[tool.diagnostics]\nskip = []\n",
    "another encoding": "# é\n[tool.diagnostics.ignore]\ndead-units = 'x'\n".encode("utf-16"),
    "endless brackets": b"x = " + b"[" * 20_000,
}


def diagnose(folder, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "diagnostics", *arguments],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **options,
    )  # fmt: skip


class TestOfProject:
    @pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
    def test_a_mistake_is_returned_and_not_raised(self, tmp_path, monkeypatch, text):
        (tmp_path / "pyproject.toml").write_bytes(text)
        monkeypatch.chdir(tmp_path)
        policy, (mistake,) = of_project()
        assert (policy.ignores, str(tmp_path / "pyproject.toml") in mistake) == ({}, True)

    def test_the_other_entries_count(self, tmp_path, monkeypatch):
        (tmp_path / "pyproject.toml").write_text(
            "[tool.diagnostics]\nskip = 1\n[tool.diagnostics.ignore]\ndead-units = 'sparse'\nloss-plato = 'x'\n"
        )
        monkeypatch.chdir(tmp_path)
        policy, mistakes = of_project()
        assert policy.ignores == {"dead-units": "sparse"}
        assert ["holds skip" in mistakes[0], "names 'loss-plato'" in mistakes[1]] == [True, True]

    @pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs Linux")
    def test_a_file_that_cannot_be_read_is_a_mistake(self, tmp_path, monkeypatch):
        (tmp_path / "pyproject.toml").symlink_to("/proc/self/mem")
        monkeypatch.chdir(tmp_path)
        assert "cannot be read: [Errno 5]" in of_project()[1][0]

    def test_a_folder_of_that_name_is_no_file_of_settings(self, tmp_path, monkeypatch):
        (tmp_path / "pyproject.toml").mkdir()
        monkeypatch.chdir(tmp_path)
        assert of_project() == (Policy(), ())


class TestRun:
    @pytest.mark.parametrize("text", [BROKEN["no TOML"], BROKEN["a number"]], ids=["no TOML", "a number"])
    def test_a_mistake_is_a_line_of_the_report(self, tmp_path, text):
        (tmp_path / "pyproject.toml").write_bytes(text)
        (tmp_path / "train.py").write_text(SCRIPT)
        ended = diagnose(tmp_path, "run", "--format", "json", "train.py")
        assert (ended.returncode, ended.stdout) == (3, "ran\n"), ended.stderr
        report = json.loads(ended.stderr)
        assert "pyproject.toml" in report["settings"][0]
        assert report["faults"] == []
        assert "Left out of the settings: " in " ".join(diagnose(tmp_path, "run", "train.py").stderr.split())

    @pytest.mark.parametrize("options", [(), ("--format", "markdown"), ("--output", "{}/report.html")])
    def test_a_script_runs_where_the_working_directory_is_gone(self, tmp_path, options):
        script, gone = tmp_path / "train.py", tmp_path / "gone"
        script.write_text("import os\nos.chdir('/')\n" + SCRIPT)
        gone.mkdir()
        ended = diagnose(
            gone, "run", *(option.format(tmp_path) for option in options), str(script), preexec_fn=gone.rmdir
        )
        assert (ended.returncode, ended.stdout) == (3, "ran\n"), ended.stderr
        assert "Traceback" not in ended.stderr
        script.write_text(SCRIPT)
        gone.mkdir()
        ended = diagnose(gone, "run", str(script), preexec_fn=gone.rmdir)
        assert (ended.returncode, ended.stdout) == (3, "ran\n"), ended.stderr


class TestExplain:
    def test_a_mistake_is_a_line_of_the_report(self, tmp_path):
        (tmp_path / "pyproject.toml").write_bytes(BROKEN["a list"])
        (tmp_path / "log.txt").write_text("IndexError: Target 2 is out of bounds.\n")
        ended = diagnose(tmp_path, "explain", "--format", "json", "log.txt")
        report = json.loads(ended.stdout)
        assert [finding["rule"] for finding in report["findings"]] == ["labels-out-of-range"]
        assert "pyproject.toml" in report["settings"][0]

    def test_answers_where_the_working_directory_is_gone(self, tmp_path):
        log, gone = tmp_path / "log.txt", tmp_path / "gone"
        log.write_text("IndexError: Target 2 is out of bounds.\n")
        gone.mkdir()
        ended = diagnose(gone, "explain", str(log), preexec_fn=gone.rmdir)
        assert (ended.returncode, ended.stderr) == (1, "")
        assert "labels-out-of-range" in ended.stdout
