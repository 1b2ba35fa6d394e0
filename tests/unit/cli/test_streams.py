"""Every command prints its whole answer in any encoding, and ends in order when it cannot print."""

import json
import os
import subprocess
import sys

import pytest

from diagnostics.cli.main import main

MESSAGE = "ValueError: Daten → fehlen: “Größe” ≥ 3 … \N{SNOWMAN} \ud800"
FRAME = 'Traceback (most recent call last):\n  File "größe.py", line 3, in <module>\n    f("→")\n'
CELL = {
    "cell_type": "code", "execution_count": 1, "metadata": {}, "source": "größe = '→ \N{SNOWMAN}'\nprint(x)",
    "outputs": [],
}  # fmt: skip
NOTEBOOK = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
COMMANDS = (
    "explain log.txt", "explain log.txt --format markdown", "explain log.txt --format html",
    "explain log.txt --format json", "notebook x.ipynb", "notebook x.ipynb --format html",
    "notebook x.ipynb --format markdown", "rules", "rules --format json", "rules labels-out-of-range",
    "rules loss-plateau", "gpu", "join reports", "--help", "run --help", "network --help", "--version",
)  # fmt: skip
SURROUNDINGS = {
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "the locale C": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}
EACH = f"""
import sys
from diagnostics.cli.main import main
for command in {COMMANDS}:
    before = sys.stdout.errors
    try:
        code = main(command.split())
    except SystemExit as ended:
        code = ended.code
    assert sys.stdout.errors == before
    print("-- ended with", code, flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "log.txt").write_bytes((FRAME + MESSAGE).encode("utf-8", "surrogatepass"))
    (tmp_path / "x.ipynb").write_text(json.dumps(NOTEBOOK))
    (tmp_path / "reports").mkdir()
    return tmp_path


def started(folder, arguments, stdout=subprocess.PIPE, **surroundings):
    surroundings = {**os.environ, "PYTHONUNBUFFERED": "", **surroundings}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=surroundings, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("surroundings", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_commands_answer_in_any_encoding(folder, surroundings):
    ended = started(folder, ["-c", EACH], **surroundings)
    usual = started(folder, ["-c", EACH], PYTHONIOENCODING="utf-8")
    assert (ended.returncode, len(ended.stderr)) == (usual.returncode, len(usual.stderr)), ended.stderr.decode()
    assert b"Traceback" not in ended.stderr
    answers, usually = (each.stdout.split(b"-- ended with ") for each in (ended, usual))
    assert len(answers) == len(usually) == len(COMMANDS) + 1
    for command, answer, usual_one in zip(COMMANDS, answers, usually[:-1], strict=False):
        assert len(answer.split()) >= 0.9 * len(usual_one.split()), command


def test_signs_of_reports_look_alike_in_ascii(folder):
    ended = started(folder, ["-m", "diagnostics", "explain", "log.txt"], PYTHONIOENCODING="ascii")
    said = " ".join(ended.stdout.decode("ascii").split())
    assert r"""Daten -> fehlen: "Gr\xf6\xdfe" >= 3 ... \u2603""" in said


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["explain log.txt", "rules --format json", "--version"])
def test_command_ends_quietly_when_nobody_reads_on(folder, command, unbuffered):
    reading, writing = os.pipe()
    os.close(reading)
    ended = started(folder, ["-m", "diagnostics", *command.split()], writing, PYTHONUNBUFFERED=unbuffered)
    os.close(writing)
    assert (ended.stderr, ended.returncode in (0, 1)) == (b"", True)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["explain log.txt", "rules --format json", "--version"])
def test_command_says_that_the_disk_is_full(folder, command, unbuffered):
    with open("/dev/full", "w") as full:
        ended = started(folder, ["-m", "diagnostics", *command.split()], full, PYTHONUNBUFFERED=unbuffered)
    said = b"diagnose: cannot write to standard output: No space left on device.\n"
    assert (ended.returncode, ended.stderr) == (2, said)


def test_command_runs_without_any_standard_output(folder):
    ended = started(folder, ["-c", "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, '-m', "
                                   "'diagnostics', 'explain', 'log.txt'])"])  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_script_keeps_the_settings_of_its_own_stream(tmp_path):
    (tmp_path / "train.py").write_text("import sys\nprint(sys.stdout.errors, sys.stdout.encoding)\nprint('→')\n")
    ended = started(tmp_path, ["-m", "diagnostics", "run", "train.py"], PYTHONIOENCODING="cp1252")
    assert (ended.returncode, ended.stdout) == (1, b"strict cp1252" + os.linesep.encode())
    assert b"UnicodeEncodeError" in ended.stderr


def test_main_takes_a_replaced_stream(capsys, folder):
    assert main(["explain", str(folder / "log.txt")]) == 0
    assert "→" in capsys.readouterr().out
