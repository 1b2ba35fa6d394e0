"""Runs work in a forked child that cannot change anything outside itself, whatever code it calls.

The child has a copy of the process' memory. The kernel forbids it to write to files, to start programs, to connect
and to signal other processes (Landlock); its memory that other processes share is made read-only, its files and
sockets lead nowhere, and Python's audit events refuse what is left. So it may run code of a user's that prints,
counts, logs or writes.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import functools
import io
import os
import pickle
import random
import select
import signal
import stat
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from diagnostics.collectors.system.host_memory import resident_memory
from diagnostics.errors import message_of

GRACE_S = 1.0  # that the child has after its deadline, before it is killed
CREATE_RULESET, RESTRICT_SELF = 444, 446  # system calls, the same on every architecture
VERSION = 1  # flag of CREATE_RULESET: only ask for the version of Landlock
MOST_RESIDENT = 16 * 2**30  # bytes: to fork copies the page tables, a second for some hundred GiB
LEAST_VERSION = 3  # the first that forbids to truncate a file (Linux 6.2)
WRITES = sum(1 << bit for bit in (0, 1, *range(4, 15)))  # execute; write, remove, make, rename, truncate
TCP, SCOPES = 0b11, 0b11  # bind and connect since version 4; abstract sockets and signals since version 6
SET_DUMPABLE, SET_NO_NEW_PRIVILEGES = 4, 38  # of prctl
PROT_READ = 1
CLOSED_FAMILIES = frozenset(
    (
        *("ftplib", "http", "imaplib", "nntplib", "os", "poplib", "pty", "shutil", "signal", "smtplib", "socket"),
        *("sqlite3", "subprocess", "syslog", "telnetlib", "urllib", "webbrowser"),
    )
)
"""Audit events that are refused, by what comes before their dot."""
OPEN_EVENTS = frozenset(
    (
        *("os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.getxattr", "os.listxattr"),
        *("os.putenv", "os.unsetenv", "socket.gethostname"),
    )
)
"""Those among them that nothing outside notices."""

_inside = False


class SandboxEnded(Exception):
    """The child ended without a result; the message says how, as a clause without a subject."""


class SandboxFault(Exception):
    """The work raised; the message is its traceback."""


class SideEffect(PermissionError):
    """What the sandboxed code wanted to do could be noticed outside."""


def is_sandboxed() -> bool:
    """Whether this process is the child, where code may have side effects."""
    return _inside


def can_sandbox() -> bool:
    """Whether work can run in such a child: Linux with Landlock, and nothing in use that a fork could harm."""
    if sys.platform != "linux" or not hasattr(os, "fork"):
        return False
    torch: Any = sys.modules.get("torch")
    if torch is not None and (torch.cuda.is_initialized() or _has_ranks(torch)):
        return False
    return _landlock_version() >= LEAST_VERSION and resident_memory() <= MOST_RESIDENT


def _has_ranks(torch: Any) -> bool:
    """Whether processes train together: memory registered with a network card may not survive a fork."""
    distributed = torch.distributed
    return bool(distributed.is_available() and distributed.is_initialized())


def run_sandboxed(work: Callable[[], Any], deadline: float) -> Any:
    """Run work in a child, and return what it returns, which must be picklable.

    Args:
        work: sees the process as it is now; nothing it does can be noticed outside.
        deadline: of `time.monotonic`; the child is killed a second after it.

    Raises:
        SandboxEnded: the work did not end in time, or ended its process.
        SandboxFault: the work raised.
        OSError: no process could be started.
    """
    reading, writing = os.pipe()
    state = random.getstate()  # Python reseeds a forked child
    with _children_unheard(), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # Python 3.12 and JAX warn of any fork; this child takes no locks of others
        child = os.fork()
        if child == 0:
            _be_child(work, writing, state)  # does not return
        os.close(writing)
        try:
            received = _received(reading, deadline + GRACE_S)
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)  # it has sent all that it had, or is too late
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
    if received is None:
        raise SandboxEnded("did not end in time")
    if not received:
        raise SandboxEnded("ended its process")
    kind, value = pickle.loads(received)
    if kind == "raised":
        raise SandboxFault(value)
    return value


def _received(reading: int, until: float) -> bytes | None:
    """Read until the end of the stream; None if that does not come in time."""
    parts: list[bytes] = []
    while select.select([reading], [], [], max(until - time.monotonic(), 0))[0]:
        part = os.read(reading, 2**16)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None


@contextlib.contextmanager
def _children_unheard() -> Iterator[None]:
    """Keep the end of a child from a handler of the script's."""
    try:
        before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    except ValueError:  # not in the main thread, where alone handlers run
        yield
        return
    try:
        yield
    finally:
        if before is not None:  # one that was not installed from Python cannot be put back
            signal.signal(signal.SIGCHLD, before)


def _be_child(work: Callable[[], Any], writing: int, state: Any) -> None:
    """Do the work, send its result, and end the process without running exit handlers."""
    try:
        _shut_off(writing)
        random.setstate(state)
        try:
            message = "returned", work()
        except BaseException as fault:
            message = "raised", "".join(traceback.format_exception(fault)).strip() or message_of(fault)
        data = memoryview(pickle.dumps(message))
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def _shut_off(writing: int) -> None:
    """Give up everything by which this process could be noticed, but the descriptor of the result."""
    global _inside
    _inside = True
    sys.settrace(None)
    sys.setprofile(None)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out, this process ends first
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in {0, 1, 2, *map(int, os.listdir("/proc/self/fd"))} - {writing, nowhere}:
        with contextlib.suppress(OSError):  # the one with which the folder was listed
            os.dup2(nowhere, number)
    sys.dont_write_bytecode = True
    io.open = builtins.open = _read_only(io.open, nowhere)
    c = ctypes.CDLL(None, use_errno=True)
    _protect_shared_memory(c)
    _forbid_writes(c)
    c.prctl(SET_DUMPABLE, 0, 0, 0, 0)  # should it crash, no core file is written
    sys.addaudithook(_refuse)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)  # the threads of the parent's pool do not exist here


def _read_only(original: Callable[..., Any], nowhere: int) -> Callable[..., Any]:
    """Open files to be read; what is written goes nowhere."""

    @functools.wraps(original)
    def replacement(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if set(mode) & set("wax+"):
            file, mode = os.dup(nowhere), mode.replace("x", "w")
        return original(file, mode, *arguments, **options)

    return replacement


def _protect_shared_memory(c: Any) -> None:
    """Make memory that other processes see read-only: writing to it ends the child."""
    with open("/proc/self/maps") as maps:
        spans = [line.split(maxsplit=2)[:2] for line in maps]
    for span, mode in spans:
        if mode[1] == "w" and mode[3] == "s":
            begin, end = (int(bound, 16) for bound in span.split("-"))
            c.mprotect(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), PROT_READ)


def _landlock_version() -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION))


def _forbid_writes(c: Any) -> None:
    """Forbid this process for good to change files, to start programs, to connect and to signal.

    Raises:
        OSError: the kernel refuses; then nothing may be run.
    """
    version = _landlock_version()
    rules = (ctypes.c_uint64 * 3)(WRITES, TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = c.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    if ruleset < 0 or c.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or c.syscall(RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "the kernel did not restrict the process")
    os.close(ruleset)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what the kernel lets pass: sockets that are no TCP, and to read what is read once."""
    if event == "open":
        path, _, flags = arguments
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND))
        if isinstance(path, str | bytes) and (writes or not _is_plain(path)):  # a descriptor leads nowhere
            raise SideEffect(f"opening {path!r}")
    elif event.partition(".")[0] in CLOSED_FAMILIES and event not in OPEN_EVENTS:
        raise SideEffect(event)


def _is_plain(path: str | bytes) -> bool:
    """Whether a path is a file that is there to be read any number of times, or nothing at all."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
