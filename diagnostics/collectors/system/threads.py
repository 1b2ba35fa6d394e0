"""Reads where the threads of this process stand, from another thread."""

from __future__ import annotations

import linecache
import sys
import threading
from types import FrameType
from typing import NamedTuple

from diagnostics.collectors.isolation.patching import FROZEN
from diagnostics.facts.where import Where, is_user_code, shorten

MOST_THREADS = 8


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
