"""A script in a process of its own, held to a budget of time and memory, with nothing left behind.

A supervisor (`bugs/zoo/keeper/supervisor.py`) runs between the runner and the script. It ends whatever the script
has started, also when the runner is killed. The script works in a temporary folder (also its `TMPDIR`), so that
checkpoints and half-written files go when it does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import psutil

if TYPE_CHECKING:
    from bugs.lab.forks import Fork

POLL_S = 0.1  # how often memory is read; one reading of a small tree takes about 2 ms
TAIL_BYTES = 1 << 20  # how much of each stream is kept, to find the traceback and the metrics in
DRAIN_S = 1.0  # how long, after the end of all who write to a pipe, the last of it may take to be read
KILL_S = 10.0  # how long the supervisor may take to end everything; twice its own bound
SUPERVISOR = Path(__file__).with_name("supervisor.py")

Sink = Callable[[bytes], object]
How = Literal["exited", "too slow", "too big", "stopped"]  # stopped: by the `stop` event


@dataclass(frozen=True)
class Ending:
    """How a child process ended, and the last of what it said."""

    how: How
    returncode: int  # negative: the signal that killed it
    seconds: float  # until the script and all that it started had ended
    peak_mb: float  # largest resident set of the process tree seen, MiB
    stdout: str
    stderr: str


def run_child(
    arguments: Sequence[str],
    *,
    budget_s: float,
    budget_mb: float,
    to_stdout: Sink,
    to_stderr: Sink,
    environment: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
) -> Ending:
    """Run this Python with `arguments`, pass on its output as it comes, unchanged, and return how it ended.

    The child and all that it started are killed when a budget (seconds, MiB of resident memory) is used up,
    when `stop` is set, when an exception such as KeyboardInterrupt leaves this function, and when this process
    dies. What outlives the child itself has a second to end.
    """
    with tempfile.TemporaryDirectory(prefix="bug-zoo-", ignore_cleanup_errors=True) as folder:
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-P", str(SUPERVISOR), folder, *arguments],
            env=environment_in(folder) | dict(environment or {}),
            stdin=subprocess.PIPE,  # nothing is written to it: its end tells the supervisor that we are gone
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C and a closed terminal are the runner's to answer
        )
        assert process.stdout is not None
        assert process.stderr is not None
        streams = [_Stream(process.stdout, to_stdout), _Stream(process.stderr, to_stderr)]
        tree = _Tree(process.pid)

        def ended(seconds: float) -> bool:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            return process.returncode is not None

        try:
            how = _until_over(ended, tree, started + budget_s, budget_mb, stop)
            seconds = time.monotonic() - started
        finally:
            tree.kill(process)
        for stream in streams:
            stream.join(DRAIN_S)
    return Ending(how, process.returncode, seconds, tree.peak_mb, streams[0].text(), streams[1].text())


def watch_fork(fork: Fork, *, budget_s: float, budget_mb: float, stop: threading.Event | None = None) -> Ending:
    """Hold a forked script that starts no processes to its budgets, as `run_child` does; return how it ended."""
    started = time.monotonic()
    tree = _Tree(fork.pid, counted=True)
    how = _until_over(fork.ended, tree, started + budget_s, budget_mb, stop)
    fork.kill()
    seconds = time.monotonic() - started
    code = fork.end(KILL_S).returncode
    out, err = (fork.streams[name].read_bytes()[-TAIL_BYTES:] for name in ("stdout", "stderr"))
    return Ending(how, code, seconds, tree.peak_mb, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _until_over(
    ended: Callable[[float], bool],
    tree: _Tree,
    deadline: float,
    budget_mb: float,
    stop: threading.Event | None,
) -> How:
    """Wait until a script has ended, or is to be."""
    while not ended(POLL_S):
        if tree.measure() > budget_mb:
            return "too big"
        if time.monotonic() > deadline:
            return "too slow"
        if stop is not None and stop.is_set():
            return "stopped"
    return "exited"


def environment_in(folder: str) -> dict[str, str]:
    """Return the variables of a script that works in a folder."""
    environment = dict(os.environ)
    for name in ("ZOO_MODEL", "ZOO_DATASET"):
        # A folder named relative to where the reader stands must be found from the temporary one, too.
        if os.path.exists(value := environment.get(name, "")):
            environment[name] = os.path.abspath(value)
    if sys.stderr.isatty():
        # Progress bars fill the reader's terminal although they are written to a pipe.
        size = shutil.get_terminal_size()
        environment |= {"COLUMNS": str(size.columns), "LINES": str(size.lines)}
    # Threads that spin while they wait for each other make a busy machine up to four times slower.
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return environment | {"PYTHONUNBUFFERED": "1", "TMPDIR": folder}


class _Stream:
    """A thread that passes on what comes out of a pipe, and keeps the end of it."""

    def __init__(self, pipe: IO[bytes], sink: Sink) -> None:
        self._pipe, self._sink = pipe, sink
        self._tail = bytearray()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def _pump(self) -> None:
        sink: Sink | None = self._sink
        with contextlib.suppress(OSError, ValueError):  # closed under us
            while chunk := os.read(self._pipe.fileno(), 1 << 16):
                if sink is not None:
                    try:
                        sink(chunk)
                    except OSError:  # nobody reads our output any more (`| head`); the child may still finish
                        sink = None
                self._tail += chunk
                if len(self._tail) > 2 * TAIL_BYTES:
                    del self._tail[:-TAIL_BYTES]

    def join(self, seconds: float) -> None:
        self._thread.join(max(0.0, seconds))

    def text(self) -> str:
        return bytes(self._tail[-TAIL_BYTES:]).decode("utf-8", "replace")


class _Tree:
    """A process and everything that descends from it.

    Args:
        pid: of the process.
        counted: whether its own memory counts; a supervisor's does not.
    """

    def __init__(self, pid: int, counted: bool = False) -> None:
        self._pid, self._counted = pid, counted
        self._processes: set[psutil.Process] = set()
        self.peak_mb = 0.0

    def measure(self) -> float:
        """Return the resident memory of the whole tree, MiB; pages that processes share count for each."""
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(self._pid)  # a fork that has ended is gone, a supervisor waits for its keeper
            self._processes.update([root] if self._counted else [], root.children(recursive=True))
        total = 0
        for process in tuple(self._processes):
            try:
                total += process.memory_info().rss
            except psutil.Error:
                self._processes.discard(process)
        self.peak_mb = max(self.peak_mb, total / 2**20)
        return total / 2**20

    def kill(self, supervisor: subprocess.Popen[bytes]) -> None:
        """Have the supervisor end whatever of the tree still runs, at once, and wait for it."""
        assert supervisor.stdin is not None
        supervisor.stdin.close()
        try:
            supervisor.wait(KILL_S)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()
        for process in self._processes:  # off Linux, those that left the supervisor's reach
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(self._processes, timeout=2)


def pass_to(stream: IO[str]) -> Sink:
    """Return a sink that writes bytes to `stream` at once, so that carriage returns stay what they are."""

    def write(chunk: bytes) -> None:
        stream.buffer.write(chunk)  # type: ignore[attr-defined]
        stream.flush()

    return write


def keep_quiet(_: bytes) -> None:
    """Take a chunk of output and show it to nobody."""
