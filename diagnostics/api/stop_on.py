"""`stop_on`: ends training at a finding, before more of it is wasted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from diagnostics.engine.finding import SEVERITIES
from diagnostics.errors import InvalidInput, TrainingStopped
from diagnostics.report.report import Report

from .pace import Pace

Stopping = Literal["error", "warning"]
STOP_ON: tuple[Stopping, ...] = get_args(Stopping)
EARLIEST = 16  # steps before a finding counts that is not about NaN or infinity; our choice


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
