"""Starts the child processes that try the network, and ends them whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from .trial import GRACE_S, Spec

START_S = 120.0  # to import PyTorch, from a network file system that others use, too
QUIET_S = GRACE_S + 7.0  # past the limit, after which a child that says nothing is ended
LOOK_S = 0.2  # between two looks whether to stop

# Not `-m`: a folder `diagnostics` in the working directory would be run.
START = (
    f"import sys; sys.path[0] = {str(Path(__file__).resolve().parents[3])!r}; "
    "from diagnostics.collectors.network.trial import main; main()"
)
LOGGED: Mapping[str, str] = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV",
    "TORCH_CPP_LOG_LEVEL": "INFO",
    "OMP_NUM_THREADS": "1",
}
"""What the communication library logs, unless the environment says otherwise."""
ALWAYS: Mapping[str, str] = {"TORCH_NCCL_BLOCKING_WAIT": "1", "PYTHONUNBUFFERED": "1"}


@dataclass
class Tried:
    """What became of one rank's child process.

    Attributes:
        spec: what it was to try.
        state: its last notes; empty if it wrote none.
        others: by rank, the notes that rank 0 has gathered; None if it did not come so far.
        code: its exit code, negative for a signal; None if it was ended from here.
        log: what it and its libraries have printed.
        pid: of the process.
        silent: whether it was ended because it said nothing for too long.
    """

    spec: Spec
    pid: int = 0
    silent: bool = False
    state: dict[str, Any] = field(default_factory=dict)
    others: dict[str, dict[str, Any]] | None = None
    code: int | None = None
    log: str = ""


class Children:
    """The child processes of the ranks that are tried here; ends them all when the context is left."""

    def __init__(self, specs: Sequence[Spec], logs: Path | None = None) -> None:
        """Prepare.

        Args:
            specs: one for each rank. Where the port is None, it is that which rank 0, the first of them, gets.
            logs: folder to keep what they print: ``rank0.log``, and so on; None to keep nothing.
        """
        self.tried = [Tried(spec) for spec in specs]
        self._logs = logs
        self._processes: list[subprocess.Popen[bytes]] = []
        self._files: list[IO[bytes]] = []
        self._port_told = False

    def __enter__(self) -> Children:
        try:
            for one in self.tried:
                self._processes.append(self._started(one.spec))
                one.pid = self._processes[-1].pid
        except BaseException:
            self.__exit__()
            raise
        return self

    def _started(self, spec: Spec) -> subprocess.Popen[bytes]:
        # A temporary file has no name: it is gone with this process, however that ends.
        named = None if self._logs is None else self._logs / f"rank{spec.rank}.log"
        self._files.append(tempfile.TemporaryFile() if named is None else named.open("w+b"))  # noqa: SIM115
        process = subprocess.Popen(
            [sys.executable, "-c", START],
            env={**LOGGED, **os.environ, **ALWAYS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._files[-1],
        )
        self._write(process, asdict(spec))
        return process

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        for file in self._files:
            file.close()

    def follow(self, stopped: Callable[[], bool]) -> None:
        """Read the children's notes until all have ended, or say nothing for longer than they may.

        Args:
            stopped: asked now and then whether to give up at once.
        """
        for number, line in self._lines(stopped):
            one = self.tried[number]
            message = json.loads(line)
            if "others" in message:
                one.others = message["others"]
                continue
            one.state = message
            if number == 0 and not self._port_told and "port" in message:
                self._port_told = True
                for process, other in zip(self._processes[1:], self.tried[1:], strict=True):
                    if other.spec.port is None:
                        self._write(process, message["port"])
        for process, one, file in zip(self._processes, self.tried, self._files, strict=True):
            try:
                one.code = process.wait(0.0 if stopped() else LOOK_S)
            except subprocess.TimeoutExpired:
                one.silent = not stopped()
            file.seek(0)
            one.log = file.read().decode("utf-8", "replace")

    def _patience(self) -> float:
        """Return the seconds that all children may say nothing."""
        began = all(one.state.get("begun") for one in self.tried)
        return QUIET_S + self.tried[0].spec.limit + (0 if began else START_S)

    def _lines(self, stopped: Callable[[], bool]) -> Iterator[tuple[int, str]]:
        """Yield number of child and line, as they come."""
        rests, heard = [b""] * len(self._processes), time.monotonic()
        with selectors.DefaultSelector() as selector:
            for number, process in enumerate(self._processes):
                assert process.stdout is not None
                selector.register(process.stdout, selectors.EVENT_READ, number)
            while selector.get_map() and not stopped() and time.monotonic() < heard + self._patience():
                for key, _ in selector.select(LOOK_S):
                    heard = time.monotonic()
                    data = os.read(key.fd, 65536)
                    if not data:
                        selector.unregister(key.fileobj)
                    *lines, rests[key.data] = (rests[key.data] + data).split(b"\n")
                    yield from ((key.data, line.decode()) for line in lines)

    @staticmethod
    def _write(process: subprocess.Popen[bytes], value: Any) -> None:
        with contextlib.suppress(OSError):  # it has ended; that is seen elsewhere
            assert process.stdin is not None
            process.stdin.write(json.dumps(value).encode() + b"\n")
            process.stdin.flush()


def own_specs(count: int, backend: str, limit: float) -> list[Spec]:
    """Return the specs of processes that meet on this host, at a port that is free."""
    first = Spec(0, count, 0, "127.0.0.1", 0, True, f"own-{os.getpid()}", backend, limit)
    return [replace(first, rank=n, local_rank=n, port=None if n else 0, hosts=n == 0) for n in range(count)]
