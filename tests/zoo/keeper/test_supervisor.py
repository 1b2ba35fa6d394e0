"""Whatever ends the runner ends the script, and all that the script has started."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bugs.lab.forks import Forks
from bugs.zoo.keeper.child import Ending, keep_quiet, run_child, watch_fork

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="orphans are reparented to the supervisor on Linux"
)

# A daemon as system services make it: it forks twice, in a session of its own, and holds no pipe.
DAEMON = """\
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        nothing = os.open(os.devnull, os.O_RDWR)
        for pipe in range(3):
            os.dup2(nothing, pipe)
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", __file__, "daemon"])
    os._exit(0)
os.wait()
"""
STUBBORN = """\
import signal, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
"""
ENDLESS = """\
import time
time.sleep(0.3)
print("training", flush=True)
while True:
    time.sleep(0.05)
"""


class Runner:
    """`python -m bugs run 04` with a script that trains forever, and its temporary folder."""

    def __init__(self, zoo: Any, tmp_path: Path, script: str, **arguments: Any) -> None:
        zoo.cage(broken=script + ENDLESS, budget_s=60)
        self.temporary = tmp_path / "temporary"
        self.temporary.mkdir()
        self.process = subprocess.Popen(
            zoo.command("run", "04"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(self.temporary)},
            **arguments,
        )
        assert self.process.stdout is not None
        while "training" not in self.process.stdout.readline():
            assert self.process.poll() is None

    def end(self, *signals: signal.Signals) -> int:
        """Send the signals, one right after the other, and return the exit code."""
        for number in signals:
            self.process.send_signal(number)
        self.process.communicate(timeout=15)
        return self.process.returncode


def wait_until(met: Callable[[], bool], seconds: float = 15) -> None:
    until = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < until
        time.sleep(0.05)


class TestEndOfTheRunner:
    @linux_only
    @pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
    def test_a_signal_ends_a_daemon_too(
        self, zoo: Any, tmp_path: Path, running: Callable[[], list[str]], sent: signal.Signals
    ) -> None:
        runner = Runner(zoo, tmp_path, DAEMON)
        assert any(line.endswith("daemon") for line in running())
        assert runner.end(sent) == 128 + sent
        assert running() == []
        assert list(runner.temporary.iterdir()) == []

    @linux_only
    def test_sigkill_of_the_runner_leaves_nothing(
        self, zoo: Any, tmp_path: Path, running: Callable[[], list[str]]
    ) -> None:
        runner = Runner(zoo, tmp_path, DAEMON)
        assert runner.end(signal.SIGKILL) == -signal.SIGKILL
        wait_until(lambda: running() == [])
        wait_until(lambda: list(runner.temporary.iterdir()) == [])

    def test_a_script_that_ignores_every_signal_is_ended(
        self, zoo: Any, tmp_path: Path, running: Callable[[], list[str]]
    ) -> None:
        runner = Runner(zoo, tmp_path, STUBBORN)
        assert runner.end(signal.SIGTERM) == 143
        assert list(runner.temporary.iterdir()) == []

    @pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_an_impatient_second_signal_does_not_cut_the_end_short(
        self, zoo: Any, tmp_path: Path, running: Callable[[], list[str]], second: signal.Signals
    ) -> None:
        # A few thousand files, so that removing the folder takes long enough to be hit.
        litter = "for n in range(5000): open(f'checkpoint-{n}', 'w').close()\n"
        runner = Runner(zoo, tmp_path, litter)
        runner.process.send_signal(signal.SIGINT)
        for _ in range(20):
            time.sleep(0.01)
            runner.process.send_signal(second)
        assert runner.end() == 130
        assert list(runner.temporary.iterdir()) == []

    def test_nohup_is_respected(self, zoo: Any, tmp_path: Path) -> None:
        runner = Runner(zoo, tmp_path, "", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        runner.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert runner.process.poll() is None
        assert runner.end(signal.SIGTERM) == 143

    def test_a_closed_terminal_ends_the_script(
        self, zoo: Any, tmp_path: Path, running: Callable[[], list[str]]
    ) -> None:
        zoo.cage(broken=FAST_CHILD + ENDLESS, budget_s=60)
        (tmp_path / "temporary").mkdir()
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TMPDIR"] = str(tmp_path / "temporary")
            os.execv(sys.executable, zoo.command("run", "04"))
        said = b""
        while b"training" not in said:
            said += os.read(terminal, 4096)
        os.close(terminal)
        os.waitpid(pid, 0)
        wait_until(lambda: running() == [])
        assert list((tmp_path / "temporary").iterdir()) == []

    def test_a_signal_ends_a_verification(
        self, zoo: Any, tmp_path: Path, running: Callable[[], list[str]]
    ) -> None:
        zoo.cage(broken="import time\ntime.sleep(60)\n", repaired="import time\ntime.sleep(60)\n", budget_s=60)
        runner = subprocess.Popen(zoo.command("verify"), stdout=subprocess.DEVNULL)
        wait_until(lambda: sum("diagnostics run" in line for line in running()) >= 2)
        runner.send_signal(signal.SIGHUP)
        assert runner.wait(15) == 129
        assert running() == []


FAST_CHILD = """\
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", __file__])
"""


class TestEndOfTheScript:
    def run(self, folder: Path, script: str) -> Ending:
        (folder / "train.py").write_text(script)
        return run_child(
            [str(folder / "train.py")], budget_s=20, budget_mb=200, to_stdout=keep_quiet, to_stderr=keep_quiet
        )

    @linux_only
    def test_a_daemon_ends_with_the_script(self, tmp_path: Path, running: Callable[[], list[str]]) -> None:
        ending = self.run(tmp_path, DAEMON + "print('eval_accuracy=0.7')\n")
        assert (ending.how, ending.returncode, ending.stdout) == ("exited", 0, "eval_accuracy=0.7\n")
        assert running() == []

    def test_a_child_may_print_its_last_words(self, tmp_path: Path, running: Callable[[], list[str]]) -> None:
        child = "import time; time.sleep(0.4); print('saved', flush=True); time.sleep(60)"
        script = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}, __file__])\n"
        assert self.run(tmp_path, script).stdout == "saved\n"

    @pytest.mark.parametrize(
        ("last_line", "returncode"),
        [
            ("sys.exit(3)", 3),
            ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
            ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
            ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
            ("raise KeyError('labels')", 1),
        ],
    )
    def test_its_exit_code_or_signal_is_passed_on(self, tmp_path: Path, last_line: str, returncode: int) -> None:
        ending = self.run(tmp_path, f"import os, signal, sys\n{last_line}\n")
        assert (ending.how, ending.returncode) == ("exited", returncode)

    def test_the_supervisors_own_memory_does_not_count(self, tmp_path: Path) -> None:
        ending = self.run(tmp_path, "import time\ntime.sleep(0.5)\n")
        alone = psutil.Process().memory_info().rss / 2**20
        assert 3 < ending.peak_mb < min(30, alone)

    @linux_only
    def test_the_script_dies_with_its_supervisor(
        self, zoo: Any, tmp_path: Path, running: Callable[[], list[str]]
    ) -> None:
        runner = Runner(zoo, tmp_path, "")
        (supervisor,) = psutil.Process(runner.process.pid).children()
        supervisor.kill()
        out, _ = runner.process.communicate(timeout=15)
        assert "killed by SIGKILL" in out
        assert running() == []


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks("import os, sys, time") as forks:
        yield forks


class TestFork:
    """A script that a warm process forks has no supervisor, and is held to the same budgets."""

    def ended(self, forks: Forks, script: str, **budgets: Any) -> Ending:
        with forks.start(script) as fork:
            ending = watch_fork(fork, **{"budget_s": 20, "budget_mb": 200} | budgets)
        assert not psutil.pid_exists(fork.pid)
        return ending

    def test_what_it_said_and_its_exit_code_are_passed_on(self, forks: Forks) -> None:
        ending = self.ended(
            forks, "print('1/2\\r2/2'); print('lost', file=sys.stderr); time.sleep(0.5); sys.exit(3)"
        )
        assert (ending.how, ending.returncode) == ("exited", 3)
        assert (ending.stdout, ending.stderr) == ("1/2\r2/2\n", "lost\n")
        assert 3 < ending.peak_mb < 100

    def test_one_that_takes_too_long_or_too_much_is_ended(self, forks: Forks) -> None:
        assert self.ended(forks, "time.sleep(60)", budget_s=0.3).how == "too slow"
        big = self.ended(forks, "print('begun', flush=True); held = b'x' * (300 << 20); time.sleep(60)")
        assert (big.how, big.returncode, big.stdout) == ("too big", -signal.SIGKILL, "begun\n")
        assert big.peak_mb > 200

    def test_it_ends_when_it_is_to_stop(self, forks: Forks) -> None:
        stop = threading.Event()
        stop.set()
        assert self.ended(forks, "time.sleep(60)", stop=stop).how == "stopped"
