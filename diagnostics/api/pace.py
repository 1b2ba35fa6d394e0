"""Paces recurring work while a script trains."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

EVERY_S = 3.0
SHARE = 1 / 50  # of the run's time that the work may take


class Pace:
    """Allows work in the main thread, at most every few seconds and for a small share of the time."""

    def __init__(self) -> None:
        """Allow the first work at once."""
        self._next, self._process, self._busy = 0.0, os.getpid(), False

    def is_time(self) -> bool:
        """Return whether to work now: not in another thread, in a forked process, or during the work itself."""
        if time.monotonic() < self._next or self._busy or os.getpid() != self._process:
            return False
        return threading.current_thread() is threading.main_thread()

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Measure the time that the work takes."""
        began, self._busy = time.monotonic(), True
        try:
            yield
        finally:
            ended, self._busy = time.monotonic(), False
            self._next = ended + max(EVERY_S, (ended - began) / SHARE)
