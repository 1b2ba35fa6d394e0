"""Collects what the libraries of a script warn of and log while it runs, which is easily overlooked."""

from __future__ import annotations

import dataclasses
import linecache
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.patching import FROZEN, Patches
from diagnostics.facts.library_messages import LibraryMessage
from diagnostics.facts.where import Where, is_user_code, shorten

MAX_MESSAGES = 20  # that differ
MAX_LENGTH = 300  # characters of a text
MAX_READ = 4 * MAX_LENGTH  # characters of it that are read
SENTENCE = 30  # characters of a first line that stands for the whole text
MAX_FRAMES = 96  # of a stack that are searched for the script's line
ABOUT_CODE = (  # of the library's own future, or of Python: they say nothing about a training
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
    ResourceWarning,
    BytesWarning,
    SyntaxWarning,
)
_OURS, _MACHINERY = __name__.partition(".")[0], ("warnings", "logging", "contextlib")
_DIGITS = re.compile(r"\d+")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


class LibraryMessageObserver:
    """Collects warnings that are shown, and log lines of level WARNING or above, each once.

    Nothing of what is shown changes. Warnings that the script suppresses or catches, those that it issues itself,
    and its own log lines are left out. So are those about deprecated functions.
    """

    def __init__(self, patches: Patches, guard: FaultGuard) -> None:
        """Observe until the patches are undone."""
        self._guard, self._lock = guard, threading.Lock()
        self._messages: dict[tuple[str, str, str], LibraryMessage] = {}
        if hasattr(warnings, "_showwarnmsg_impl"):
            patches.around(warnings, "_showwarnmsg_impl", self._of_warnings)
        patches.around(logging.Logger, "callHandlers", self._of_log_lines)

    @property
    def messages(self) -> tuple[LibraryMessage, ...]:
        """The messages so far, in the order in which each was first shown."""
        return tuple(self._messages.values())

    def _of_warnings(self, original: Callable[[Any], None]) -> Callable[[Any], None]:
        def replacement(msg: Any) -> None:
            original(msg)
            if not is_own_run():
                self._guard.attempt(self._warned, msg)

        return replacement

    def _of_log_lines(self, original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def replacement(self_: Any, record: Any) -> None:
            original(self_, record)
            if record.levelno >= logging.WARNING and not is_own_run():
                self._guard.attempt(self._logged, record)

        return replacement

    def _warned(self, message: Any) -> None:
        if issubclass(message.category, ABOUT_CODE):
            return
        frames = _frames()
        innermost = next(frames, None)
        if innermost is None:
            return
        if is_user_code(innermost.f_code.co_filename):
            if "warn" in linecache.getline(innermost.f_code.co_filename, innermost.f_lineno):
                return  # the script's own
            library = "compiled code"  # PyTorch's, or NumPy's, which leaves no frame
        else:
            library = _library(innermost.f_globals.get("__name__", ""))
        self._add(library, message.category.__name__, str(message.message))

    def _logged(self, record: logging.LogRecord) -> None:
        library = _library(record.name)
        if library == _OURS or is_user_code(record.pathname):
            return
        self._add(library, record.levelname, record.getMessage())

    def _add(self, library: str, kind: str, text: str) -> None:
        lines = _COLOUR.sub("", text[:MAX_READ]).strip().splitlines() or [""]
        # A long first line says it all: what follows is a table, or advice.
        text = " ".join((lines[0] if len(lines[0]) >= SENTENCE else " ".join(lines)).split())
        key = library, kind, _DIGITS.sub("#", text)
        with self._lock:
            if (known := self._messages.get(key)) is not None:
                self._messages[key] = dataclasses.replace(known, times=known.times + 1)
            elif len(self._messages) < MAX_MESSAGES:
                short = text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"
                self._messages[key] = LibraryMessage(library, kind, short, where=_place())


def _library(module: str) -> str:
    return module.partition(".")[0] or "a library"


def _frames() -> Iterator[FrameType]:
    """Yield the frames of this thread's stack, the innermost first, but for this library's and the machinery."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        if frame is None:
            return
        name = _library(frame.f_globals.get("__name__", ""))
        if name != _OURS and name not in _MACHINERY and frame.f_code.co_filename != FROZEN:
            yield frame
        frame = frame.f_back


def _place() -> Where | None:
    for frame in _frames():
        if is_user_code(frame.f_code.co_filename):
            return Where(shorten(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name)
    return None
