"""Stops a script at a limit of steps or seconds, as Ctrl-C would, so that it can clean up."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from types import TracebackType

from diagnostics.text.join import count_of

from .ending.steps import after_each_step


class Limits:
    """Counts optimizer steps and seconds from `__enter__` to `__exit__`; interrupts the script at the first limit.

    A script that handles KeyboardInterrupt may continue after its training; if it trains on, it is interrupted
    again.

    Attributes:
        reached: the limit that was reached: ``500 steps``; None while none was.
        steps: the highest number of steps of one optimizer.
    """

    def __init__(self, max_steps: int | None, time_limit: float | None) -> None:
        """Set the limits.

        Args:
            max_steps: of one optimizer, or of one `fit`; None for no limit.
            time_limit: seconds; None for no limit.
        """
        self._max_steps, self._time_limit = max_steps, time_limit
        self.reached: str | None = None
        self.steps = 0
        self._timer: threading.Timer | None = None
        self._counts: dict[int, int] = {}  # of steps, by optimizer
        self._at_exit = contextlib.ExitStack()

    def was_reached(self) -> bool:
        """Whether a limit ended the script, or is about to end it."""
        return self.reached is not None

    def __enter__(self) -> Limits:
        if self._max_steps is None and self._time_limit is None:
            return self
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):  # under nohup, or started with &
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._max_steps is not None:
            after_each_step(self._stepped, self._at_exit)
        if self._time_limit is not None:
            self._timer = threading.Timer(self._time_limit, self._reach, [f"{self._time_limit:g} s"])
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at_exit.close()

    def _stepped(self, optimizer: object) -> None:
        steps = self._counts[id(optimizer)] = self._counts.get(id(optimizer), 0) + 1
        self.steps = max(self.steps, steps)
        if self._max_steps is not None and steps >= self._max_steps:
            self._reach(count_of(self._max_steps, "step"))

    def _reach(self, limit: str) -> None:
        self.reached = self.reached or limit
        _thread.interrupt_main()
