"""Several ends of one program: each begins where the beginning ended, and none notices another."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bugs.lab.forks import Forks

BEGINNING = "import os\nrows, first = [1, 2], os.getpid()\nprint('begun')\n"


@pytest.fixture(scope="module", params=["forked", "anew"])
def forks(request: pytest.FixtureRequest) -> Iterator[Forks]:
    """A process that has run the beginning; the second is on a system that cannot fork."""
    without = "" if request.param == "forked" else "vars(os).pop('fork', None)\n"
    with Forks(BEGINNING + without) as forks:
        yield forks


def test_an_end_has_what_the_beginning_made_and_not_what_another_end_did(forks: Forks) -> None:
    for _ in range(2):
        done = forks.run("rows.append(3)\nprint(rows)")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[1, 2, 3]")


def test_an_end_has_arguments_folder_and_environment_of_its_own(forks: Forks, tmp_path: Path) -> None:
    program = "import sys\nprint(sys.argv[1:], os.getcwd(), os.environ['ZOO_SEED'], sys.stdin.read() == '')"
    done = forks.run(program, "train.py", "--epochs", "1", folder=tmp_path, ZOO_SEED="7")
    assert done.stdout.splitlines()[-1] == f"['--epochs', '1'] {tmp_path} 7 True", done.stderr


@pytest.mark.parametrize(
    ("program", "code"),
    [("raise SystemExit(3)", 3), ("1 / 0", 1), ("os.kill(os.getpid(), 9)", -9), ("os._exit(7)", 7)],
)
def test_an_end_ends_as_it_likes(forks: Forks, program: str, code: int) -> None:
    assert forks.run(program).returncode == code
    assert forks.run("print('next')").returncode == 0


def test_one_that_takes_too_long_is_killed(forks: Forks) -> None:
    with pytest.raises(subprocess.TimeoutExpired), forks.start("import time; time.sleep(60)") as process:
        process.end(timeout=0.5)
    assert not psutil.pid_exists(process.pid)
    assert forks.run("pass").returncode == 0


def test_one_that_runs_can_be_read_and_interrupted(forks: Forks) -> None:
    with forks.start("import time\nprint('training', flush=True)\ntime.sleep(60)") as process:
        process.wait_for("training")
        os.kill(process.pid, signal.SIGINT)
        done = process.end(timeout=20)
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr


def test_a_forked_end_runs_the_beginning_no_second_time(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(first != os.getpid())\nrows.missing\n")
    with Forks(BEGINNING) as forks:
        done = forks.run((tmp_path / "train.py").read_text(), "train.py", folder=tmp_path)
    assert (done.stdout, capfd.readouterr().err) == ("True\n", "begun\n")
    assert '  File "train.py", line 2, in <module>\n    rows.missing\n' in done.stderr


def test_a_beginning_that_fails_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with Forks("1 / 0") as forks, pytest.raises(RuntimeError, match="ended with exit code 1"):
        forks.run("pass")
    assert "ZeroDivisionError" in capfd.readouterr().err
