"""What Linux says of processes, and where the threads of this one stand, read from another thread."""

from __future__ import annotations

import linecache
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from diagnostics.collectors.isolation.patching import FROZEN
from diagnostics.facts.where import Where, is_user_code, shorten

_STATE, _PARENT, _STARTED = 0, 1, 19  # fields of `stat`, after the name
MOST_THREADS = 8


def process_start(pid: int) -> float | None:
    """Return when a process was started, in seconds since the epoch; None if the system does not say.

    Only Linux says it, in ticks since it booted: 10 ms, mostly.
    """
    try:
        ticks = int(_stat(pid)[_STARTED])
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return time.time() - (since_boot - ticks / os.sysconf("SC_CLK_TCK"))


def running_ranks(launcher: int) -> set[int] | None:
    """Return the ranks among the children of a process that have not ended, by `RANK`; None if it is not known."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return None
    ranks = set()
    for pid in pids:
        try:
            found = _stat(pid)
            if int(found[_PARENT]) != launcher or found[_STATE] in "ZX":
                continue
            given = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        except (OSError, ValueError, IndexError):
            return None
        ranks |= {int(value[5:]) for value in given if value.startswith(b"RANK=") and value[5:].isdigit()}
    return ranks


def _stat(pid: int) -> list[str]:
    text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    return text.rpartition(")")[2].split()  # the name may hold blanks and brackets


class StackPosition(NamedTuple):
    """Where a thread stands.

    Attributes:
        where: the innermost line of the user's code; None if there is none.
        code: of that line.
        inside: the innermost line of all: ``torch/serialization.py:944 in save``.
        functions: names of all functions, innermost first.
    """

    where: Where | None
    code: str
    inside: str
    functions: tuple[str, ...]


def position(thread: int) -> tuple[tuple[int, int], ...]:
    """Return a value that changes whenever a thread moves: code and instruction of each of its frames."""
    frame = sys._current_frames().get(thread)
    found = []
    while frame is not None:
        found.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def stand(thread: int) -> StackPosition | None:
    """Return where a thread stands; None if it has ended."""
    frame = sys._current_frames().get(thread)
    return None if frame is None else _read(frame)


def _read(frame: FrameType | None) -> StackPosition:
    where, code, inside, functions = None, "", "", []
    while frame is not None:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if file != FROZEN:
            functions.append(frame.f_code.co_name)
            if not inside:
                inside = f"{shorten(file)}:{line} in {frame.f_code.co_name}"
            if where is None and is_user_code(file):
                where = Where(shorten(file), line, frame.f_code.co_name)
                code = linecache.getline(file, line, frame.f_globals).strip()
        frame = frame.f_back
    return StackPosition(where, code, inside, tuple(functions))


def other_threads(*known: int) -> tuple[str, ...]:
    """Describe where threads stand, but for those given: ``name: file:line in function``."""
    names = {thread.ident: thread.name for thread in tuple(threading.enumerate())}
    found = [
        f"{names.get(number, 'thread')}: {_read(frame).inside}"
        for number, frame in sys._current_frames().items()
        if number not in known
    ]
    return tuple(found[:MOST_THREADS])
