"""Several ends of one program: its beginning runs once, and a process is forked from there for each end.

To import a framework, to read the data and to make a model takes longer than most experiments with them. Each end
has a process of its own: it may run out of memory, lose its device or be killed, and leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

START_S = 600  # for the beginning, on a busy machine
_SERVER = """
import json, os, sys

def _next_end():
    for line in sys.stdin:
        end = json.loads(line)
        if not _can_fork():
            process = _started(**end)
            print(process.pid, file=answers, flush=True)
            print(process.wait(), file=answers, flush=True)
        elif (child := os.fork()) == 0:
            return end
        else:
            print(child, file=answers, flush=True)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)
    os._exit(0)

def _can_fork():  # not on Windows, and not with a GPU in use
    torch = sys.modules.get("torch")
    return hasattr(os, "fork") and not (torch is not None and torch.cuda.is_initialized())

def _started(program, arguments, folder, environment, stdout, stderr):
    import subprocess

    command = [sys.executable, "-c", sys.argv[1] + "\\n" + program, *arguments[1:]]
    with open(stdout, "w") as out, open(stderr, "w") as errors:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=errors
        )

def _become(arguments, folder, environment, stdout, stderr, **_):
    import signal

    answers.close()
    for number, file in enumerate((os.devnull, stdout, stderr)):
        os.dup2(os.open(file, os.O_WRONLY if number else os.O_RDONLY), number)
    sys.stdin = open(os.devnull)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0], sys.argv = folder, arguments

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the beginning prints
exec(compile(sys.argv[1], "<beginning>", "exec"))
sys.stdout.flush()  # or each fork would print it again
_end = _next_end()
_become(**_end)
exec(compile(_end["program"], sys.argv[0], "exec"))
"""


class Forks:
    """The process that has run the beginning. One end runs at a time.

    As a context manager it is closed at the end of the block.
    """

    def __init__(self, beginning: str) -> None:
        """Run the beginning: a program, whose names the ends can use. It must neither train nor start a thread.

        It runs on one thread, and so do the ends: a fork has none of the threads that its parent had. Where a
        process cannot be forked, on Windows or with a CUDA GPU in use, each end runs the beginning again.
        """
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, beginning],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # a line that was read ahead could not be waited for
            start_new_session=True,  # Ctrl-C is for its owner to answer
            env=os.environ
            | {
                "OMP_NUM_THREADS": "1",
                "TOKENIZERS_PARALLELISM": "false",
                "PYTHONUNBUFFERED": "",
                "TF_CPP_MIN_LOG_LEVEL": "3",
            },
        )
        self._answers = selectors.DefaultSelector()
        assert self._server.stdout is not None
        self._answers.register(self._server.stdout, selectors.EVENT_READ)

    def run(
        self, program: str, *arguments: str, folder: Path | None = None, timeout: float = 900, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run an end in a process of its own, and return what became of it.

        Args:
            program: Python.
            arguments: `sys.argv`; the first is the program's name, in tracebacks too, which show its lines if
                there is such a file.
            folder: its working directory; this process's own if None.
            timeout: seconds.
            environment: variables beside this process's own.

        Raises:
            subprocess.TimeoutExpired: it took longer, and was killed.
        """
        with self.start(program, *arguments, folder=folder, **environment) as process:
            return process.end(timeout)

    def start(self, program: str, *arguments: str, folder: Path | None = None, **environment: str) -> Fork:
        """Start an end, as `run` does, and return it while it runs."""
        return Fork(
            self,
            {
                "program": program,
                "arguments": arguments or ("-c",),
                "folder": str(folder or Path.cwd()),
                "environment": os.environ | environment,
            },
        )

    def _ask(self, end: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(end).encode() + b"\n")

    def _answer(self, timeout: float) -> int | None:
        """Return the number that the server prints next, or None if it takes longer than so many seconds.

        Raises:
            RuntimeError: the beginning has failed; its traceback is on standard error.
        """
        if not self._answers.select(timeout):
            return None
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError(f"The beginning ended with exit code {self._server.wait()}; see its traceback.")
        return int(line)

    def close(self) -> None:
        """End the process. Closing twice does no harm."""
        for pipe in (self._server.stdin, self._server.stdout):
            assert pipe is not None
            pipe.close()
        self._server.wait()

    def __enter__(self) -> Forks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Fork:
    """One end. As a context manager it is killed at the end of the block, if it still runs.

    Attributes:
        pid: its process number.
        streams: files with what it writes to `stdout` and `stderr`.
    """

    def __init__(self, forks: Forks, end: dict[str, Any]) -> None:
        self._forks, self._arguments = forks, end["arguments"]
        self._folder = tempfile.TemporaryDirectory(prefix="fork-")
        self.streams = {name: Path(self._folder.name, name) for name in ("stdout", "stderr")}
        for file in self.streams.values():
            file.touch()
        forks._ask(end | {name: str(file) for name, file in self.streams.items()})
        self._code: int | None = None
        pid = forks._answer(START_S)
        if pid is None:
            raise RuntimeError(f"The beginning was not over after {START_S} s.")
        self.pid = pid

    def said(self) -> str:
        """Return what it has printed so far."""
        return self.streams["stdout"].read_text("utf-8", errors="replace")

    def wait_for(self, text: str, timeout: float = 60) -> None:
        """Wait until it has printed a text.

        Raises:
            subprocess.TimeoutExpired: it had not after so many seconds.
        """
        until = time.monotonic() + timeout
        while text not in self.said():
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(self._arguments, timeout)
            time.sleep(0.02)

    def ended(self, timeout: float) -> bool:
        """Wait so many seconds for its end, and return whether it has come."""
        if self._code is None:
            self._code = self._forks._answer(timeout)
        return self._code is not None

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def end(self, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Wait for its end, and return what became of it.

        Raises:
            subprocess.TimeoutExpired: it still ran after so many seconds.
        """
        if not self.ended(timeout):
            raise subprocess.TimeoutExpired(self._arguments, timeout)
        errors = self.streams["stderr"].read_text("utf-8", errors="replace")
        return subprocess.CompletedProcess(self._arguments, self._code, self.said(), errors)

    def __enter__(self) -> Fork:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.ended(20)
        self._folder.cleanup()
