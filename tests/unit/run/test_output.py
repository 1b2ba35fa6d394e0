"""Where `diagnose run` writes its report, on scripts that leave the process in a bad way."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from tests.support.marks import quick
from tests.support.side_by_side import both as both
from tests.support.side_by_side import run

RAISES = """
    class Error(Exception):
        def __str__(self): HERE
        __repr__ = __str__
    raise Error('x')
    """
# What a script leaves behind it, and the line that the report begins with all the same; None: nobody can read one.
LEFT_BEHIND = {
    "a surrogate in a message": ("raise ValueError('\\udc80')", "ran train.py"),
    "an exception that cannot be printed": (RAISES.replace("HERE", "raise ValueError"), "ran train.py"),
    "an exception that exits when it is printed": (RAISES.replace("HERE", "raise SystemExit(5)"), "ran train.py"),
    "sys.exit with what cannot be printed": (
        "class X:\n    def __str__(self): raise ValueError\nraise SystemExit(X())", "ran train.py",
    ),
    "a standard error of another encoding": (
        "import io, sys\nsys.stderr = io.TextIOWrapper(sys.stderr.buffer, 'ascii', 'strict')", "ran train.py",
    ),
    "a standard error of its own": ("import sys; sys.stderr = open('own.txt', 'w')", "ran train.py"),
    "no standard error": ("import sys; sys.stderr = None", "ran train.py"),
    "a stream that fails": (
        "import sys\nclass Stream:\n    def write(self, text): raise KeyError(1)\n    flush = isatty = write\n"
        "sys.stderr = Stream()", "ran train.py",
    ),
    "no excepthook": ("import sys; del sys.excepthook", "ran train.py"),
    "closed descriptors": ("import os, sys; sys.stdout.flush(); os.close(2)", None),
    "another folder that is gone": ("import os; os.mkdir('x'); os.chdir('x'); os.rmdir('../x')", "ran train.py"),
    "little recursion": ("import sys; sys.setrecursionlimit(60)", "ran train.py"),
}  # fmt: skip


@pytest.mark.parametrize("what", quick(LEFT_BEHIND, *list(LEFT_BEHIND)[::2]))
def test_the_exit_code_and_all_else_are_the_scripts(tmp_path, what):
    text, begins = LEFT_BEHIND[what]
    (tmp_path / "train.py").write_text(textwrap.dedent(text))
    plain = run(["train.py"], tmp_path)
    own = (tmp_path / "own.txt").read_text() if (tmp_path / "own.txt").exists() else None
    for output in ("r.json", "r.html", None):
        options = [] if output is None else ["--output", output]
        script = tmp_path / "train.py"
        ended = run(["-m", "diagnostics", "run", *options, script.name], tmp_path)
        assert (ended.returncode, ended.stdout) == (plain.returncode, plain.stdout)
        assert ended.stderr.startswith(plain.stderr)
    if own is not None:
        assert (tmp_path / "own.txt").read_text() == own
    assert json.loads((tmp_path / "r.json").read_text())["faults"] == []
    assert (tmp_path / "r.html").read_text("utf-8").endswith("</html>\n\n")
    if begins is not None:
        assert f"\n{begins}" in f"\n{ended.stderr}"


def test_a_report_stays_whole_when_the_next_cannot_be_made(tmp_path):
    (tmp_path / "r.html").write_text("the report before")
    (tmp_path / "train.py").write_text(
        "import diagnostics.report.html.page as page\npage.page = lambda report: 1 / 0\nraise SystemExit(3)"
    )
    ended = run(["-m", "diagnostics", "run", "--output", "r.html", "train.py"], tmp_path)
    assert ended.returncode == 3
    assert ended.stderr == "diagnose: making the report failed: ZeroDivisionError: division by zero\n"
    assert (tmp_path / "r.html").read_text() == "the report before"


class TestStandardOutput:
    def diagnose(self, folder, text, *options, **streams):
        (folder / "train.py").write_text(text)
        return subprocess.run(
            [sys.executable, "-m", "diagnostics", "run", "--output", "-", *options, "train.py"],
            cwd=folder, env={**os.environ, "COLUMNS": "100"}, text=True, timeout=60,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )  # fmt: skip

    @pytest.mark.parametrize("kind", ["text", "json", "html", "markdown"])
    def test_the_report_follows_what_the_script_printed(self, tmp_path, kind):
        ended = self.diagnose(tmp_path, "import sys\nsys.stdout.write('out\\n')", "--format", kind)
        first, _, report = ended.stdout.partition("\n")
        assert (ended.returncode, first, ended.stderr) == (0, "out", "")
        begins = {"text": "ran train.py", "json": "{", "html": "<!DOCTYPE html>", "markdown": "## ran train.py"}[
            kind
        ]
        assert report.startswith(begins)

    def test_no_file_is_written(self, tmp_path):
        self.diagnose(tmp_path, "")
        assert os.listdir(tmp_path) == ["train.py"]

    def test_quiet_prints_nothing_where_nothing_is_wrong(self, tmp_path):
        ended = self.diagnose(tmp_path, "print('out')", "--quiet")
        assert (ended.stdout, ended.stderr) == ("out\n", "")

    def test_it_is_the_process_whose_output_it_is(self, tmp_path):
        text = "import sys\nsys.stdout = open('own.txt', 'w')\nprint('out')"
        ended = self.diagnose(tmp_path, text, "--format", "json")
        assert json.loads(ended.stdout)["exit_code"] == 0
        assert (tmp_path / "own.txt").read_text() == "out\n"

    def test_a_reader_who_has_gone_costs_no_exit_code(self, tmp_path):
        read, write = os.pipe()
        os.close(read)
        ended = self.diagnose(tmp_path, "raise SystemExit(3)", stdout=write)
        os.close(write)
        assert (ended.returncode, ended.stderr) == (3, "")

    def test_a_closed_one_costs_no_report(self, tmp_path):
        ended = self.diagnose(tmp_path, "import os; os.close(1)", "--format", "json")
        first, _, rest = ended.stderr.partition("\n")
        assert first == "diagnose: cannot write to standard output."
        assert rest.lstrip().startswith("{")

    def test_what_its_encoding_lacks_is_escaped(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PYTHONIOENCODING", "ascii")
        ended = self.diagnose(tmp_path, "raise ValueError('\\u2713')")
        assert ended.returncode == 1
        assert "ValueError: \\u2713" in ended.stdout
