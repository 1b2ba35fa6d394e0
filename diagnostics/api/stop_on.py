"""`stop_on`: ends training at a finding, before more of it is wasted; paces work while a script trains."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

from diagnostics.engine.finding import SEVERITIES
from diagnostics.errors import InvalidInput, TrainingStopped
from diagnostics.report.report import Report

Stopping = Literal["error", "warning"]
STOP_ON: tuple[Stopping, ...] = get_args(Stopping)
EARLIEST = 16  # steps before a finding counts that is not about NaN or infinity; our choice
EVERY_S = 3.0
SHARE = 1 / 50  # of the run's time that the work may take


def check_stop_on(name: str, given: Any) -> None:
    """Check that the argument is a severity or None; `name` is the name of the called function or class.

    Raises:
        InvalidInput: it is neither.
    """
    if given is not None and given not in STOP_ON:
        raise InvalidInput(f'{name}() was given stop_on={given!r}. It takes "error", "warning" or None.')


def stop_at(stop_on: Stopping, report: Report, then: Callable[[], str] = lambda: "") -> None:
    """End training if the report has a finding of that severity or worse.

    Args:
        stop_on: the lowest severity that ends training.
        report: the report so far.
        then: called first; returns a sentence for the message.

    Raises:
        TrainingStopped: there is such a finding.
    """
    counting = SEVERITIES[: SEVERITIES.index(stop_on) + 1]
    worst = next((finding for finding in report.findings if finding.severity in counting), None)
    if worst is not None:
        where = "" if worst.step is None else f" in step {worst.step}"
        parts = (f"{worst.severity}: {worst.rule}{where}.", worst.message, then())
        raise TrainingStopped(" ".join(filter(None, parts)), report)


class StopOn:
    """Checks for findings during training."""

    def __init__(self, stop_on: Stopping, report: Callable[[], Report]) -> None:
        """Judge nothing yet; `report` returns what is known."""
        self._stop_on, self._report, self._pace = stop_on, report, Pace()

    def broken(self) -> None:
        """Check now, because something is not finite. Raises TrainingStopped."""
        stop_at(self._stop_on, self._report())

    def stepped(self, steps: int) -> None:
        """Check after this many steps, if it is time. Raises TrainingStopped."""
        if steps >= EARLIEST and self._pace.is_time():
            with self._pace.working():
                stop_at(self._stop_on, self._report())


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
