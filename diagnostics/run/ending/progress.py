"""Works while the script runs: nothing can once the process is killed, or has crashed in C."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType

from diagnostics.api.pace import Pace
from diagnostics.report.report import Report
from diagnostics.report.requests import Requests

from .steps import after_each_step


class Progress:
    """Calls a function in the main thread between two steps, as `Pace` allows.

    No exception of it reaches the script: a full disk costs the report, and not the run. TrainingStopped does.

    Attributes:
        steps: so far.
    """

    def __init__(
        self,
        work: Callable[[], object] | None,
        report: Callable[[], Report],
        within: Callable[[], contextlib.AbstractContextManager[object]],
    ) -> None:
        """Call nothing yet.

        Args:
            work: to be done; None for nothing.
            report: returns what is known, for another process that asks.
            within: returns a context to make and render that report in.
        """
        self._work, self._report, self._pace, self._requests = work, report, Pace(), Requests(within)
        self.steps = 0
        self._at_exit = contextlib.ExitStack()

    def __enter__(self) -> Progress:
        after_each_step(self._stepped, self._at_exit)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._at_exit.close()

    def _stepped(self, _optimizer: object) -> None:
        self.steps += 1
        self._requests.look(self._report)
        if self._work is not None and self._pace.is_time():
            with self._pace.working(), contextlib.suppress(Exception):  # what is known cannot be shown yet
                self._work()
