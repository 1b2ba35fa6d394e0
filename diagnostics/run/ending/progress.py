"""Writes the report while the script runs: nothing can once the process is killed, or has crashed in C."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType

from .steps import after_each_step

EVERY_S = 3.0
SHARE = 1 / 50  # of the run's time that the writing may take


class Progress:
    """Calls a function in the main thread between two steps, at most every few seconds.

    Nothing that goes wrong in it reaches the script: a full disk costs the report, and not the run.
    """

    def __init__(self, write: Callable[[int], object]) -> None:
        """Call nothing yet.

        Args:
            write: is given the number of steps so far.
        """
        self._write, self._steps = write, 0
        self._next, self._process, self._busy = 0.0, os.getpid(), False
        self._at_exit = contextlib.ExitStack()

    def __enter__(self) -> Progress:
        after_each_step(self._stepped, self._at_exit)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._at_exit.close()

    def _stepped(self, _optimizer: object) -> None:
        self._steps += 1
        if time.monotonic() >= self._next and not self._busy and self._is_main():
            began = time.monotonic()
            self._attempt()
            took = time.monotonic() - began
            self._next = began + took + max(EVERY_S, took / SHARE)

    def _is_main(self) -> bool:
        """Whether this is the script's main thread, and no process that it has forked."""
        return os.getpid() == self._process and threading.current_thread() is threading.main_thread()

    def _attempt(self) -> None:
        self._busy = True
        try:
            with contextlib.suppress(Exception):  # the disk is full, or what is known cannot be shown yet
                self._write(self._steps)
        finally:
            self._busy = False
