"""What happens between two steps of a script's trainings: limits are checked, and what is known is written."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from diagnostics.api.pace import Pace
from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.report.report import Report
from diagnostics.report.requests import Requests
from diagnostics.taps.keras import train_batch_end
from diagnostics.text.join import count_of

_of_loops: list[Callable[[object], object]] = []


def loop_stepped(optimizer: object) -> None:
    """Tell of a step of a Keras optimizer outside of `fit`."""
    for then in tuple(_of_loops):
        then(optimizer)


def after_each_step(then: Callable[[object], object], at_exit: contextlib.ExitStack) -> None:
    """Call a function after each optimizer step, and each batch that `fit` of Keras has trained on.

    Args:
        then: is given the optimizer, and None in `fit`. What it raises reaches the script.
        at_exit: ends it.
    """

    def stepped(optimizer: Any, *_: Any) -> None:
        then(optimizer)

    def trained(*_: Any, **__: Any) -> None:
        then(None)

    def with_torch(_torch: Any) -> None:
        try:
            from diagnostics.taps.torch import optimizer_step
        except ImportError:  # the script has its own `torch.py`
            return
        at_exit.callback(optimizer_step.after.subscribe(stepped))

    def with_keras(_module: Any) -> None:
        at_exit.callback(train_batch_end.after.subscribe(trained))

    _of_loops.append(then)
    at_exit.callback(_of_loops.remove, then)
    at_exit.callback(after_import("torch", with_torch))
    at_exit.callback(after_import(train_batch_end.module, with_keras))


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
