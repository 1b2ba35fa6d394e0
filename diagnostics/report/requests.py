"""Reports that another process asks for while a program trains: `diagnose attach`.

A request is a file in a folder of the user's, which the one that asks creates. The program that trains creates
nothing by itself, handles no signal and starts no thread: between two steps, at most once a second, it looks for
such a file. So it leaves nothing behind, however it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import stat
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

from .formats import FORMATS
from .report import Report
from .whole_file import write_whole

EVERY_S = 1.0  # between two looks
PATIENCE_S = 5.0  # of a request: if the first has not answered by then, it may belong to a loop that is over


def folder(user: int) -> Path:
    """Return the folder for requests of a user; not by TMPDIR, which a job may have and another terminal not."""
    return Path(f"/tmp/diagnose-attach-{user}")


def is_private(path: Path, user: int) -> bool:
    """Whether a folder belongs to this user and nobody else has access."""
    try:
        known = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(known.st_mode) and known.st_uid == user and not known.st_mode & 0o077


def request_file(user: int, process: int) -> Path:
    """Return the file that a request to a process is."""
    return folder(user) / f"{process}.request"


class Requests:
    """Answers requests to this process. Of several, the first answers: of a script, or of a loop in it.

    A loop that is over may stay in memory, as in a notebook; then another answers.
    """

    _first: ClassVar[Callable[[], Requests | None]] = lambda: None

    def __init__(self, within: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext) -> None:
        """Look for nothing yet; `within` returns a context to make and render a report in."""
        self._within, self._process = within, os.getpid()
        self._next = time.monotonic() + EVERY_S if hasattr(os, "getuid") else float("inf")
        if Requests._first() is None:
            Requests._first = weakref.ref(self)

    def close(self) -> None:
        """Answer no more; another may."""
        if Requests._first() is self:
            Requests._first = lambda: None
        self._next = float("inf")

    def look(self, report: Callable[[], Report]) -> None:
        """Answer a request, if there is one and it is time to look. Raises no exception.

        Args:
            report: returns what is known.
        """
        if time.monotonic() < self._next or os.getpid() != self._process:
            return
        self._next = time.monotonic() + EVERY_S
        first, file = Requests._first(), request_file(user := os.getuid(), self._process)
        if first is None:
            Requests._first = weakref.ref(self)
        elif first is not self and _age(file) < PATIENCE_S:
            return
        if not os.path.exists(file) or threading.current_thread() is not threading.main_thread():
            return
        drawn = random.getstate()  # the first import of rich draws
        try:
            with contextlib.suppress(Exception), self._within():  # `attach` then reports a timeout
                if is_private(file.parent, user):
                    _answer(file, report)
        finally:
            random.setstate(drawn)


def _age(file: Path) -> float:
    """Return the seconds since a request was made; 0 if there is none."""
    with contextlib.suppress(OSError):
        return time.time() - file.stat().st_mtime
    return 0.0


def _answer(file: Path, known: Callable[[], Report]) -> None:
    asked = json.loads(file.read_text("utf-8"))
    file.unlink()
    if asked["format"] in FORMATS:
        report = known()
        text = report.rendered(asked["format"], redact=asked["redact"] is not False)
        found = any(finding.severity != "note" for finding in report.findings)
        answer = file.with_name(f"{int(asked['number'])}.answer")
        write_whole(answer, json.dumps({"report": text, "found": found}))
