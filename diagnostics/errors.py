"""The exceptions that `diagnostics` raises, and how they name a wrong argument.

DiagnosticsError
├── InvalidInput       the arguments cannot be examined
├── FindingsPresent    raised by `Report.raise_if` alone
└── CheckFailed        a comparison or a check of a test found a difference

TrainingStopped, a BaseException, ends a training by request: `stop_on`.
"""

from __future__ import annotations

from typing import Any


class DiagnosticsError(Exception):
    """The base class of all exceptions that this library raises."""


class InvalidInput(DiagnosticsError, ValueError):
    """An argument is wrong; the message says what was given, what was expected, and what to do."""


class FindingsPresent(DiagnosticsError):
    """A report holds findings at or above a given severity."""


class CheckFailed(DiagnosticsError, AssertionError):
    """A comparison or a check failed; the message says what was seen, what it means, and what to do."""


def ends_at_the_caller(raised: Any) -> bool:
    """Tell pytest to end the traceback of an exception of ours at the test's own line.

    The value of ``__tracebackhide__`` in modules that a test calls; `raised` is pytest's `ExceptionInfo`.
    """
    return isinstance(raised.value, DiagnosticsError)


class TrainingStopped(BaseException):
    """A finding ended the training, as `stop_on` asked.

    Like KeyboardInterrupt it is not an `Exception`: a loop or a framework that catches errors and trains on must
    not catch it.

    Attributes:
        report: up to that step, with the findings; ``report.batch()`` is the batch with NaN or infinity, if any.
    """

    def __init__(self, message: str, report: Any = None) -> None:
        """Take the message, and the report."""
        super().__init__(message)
        self.report = report


def what(value: object) -> str:
    """Name what was given instead: `None`, `a str`, `the class Linear, not an instance of it`."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}, not an instance of it"
    kind = type(value).__name__
    return f"an {kind}" if kind[0] in "AEIOUaeiou" else f"a {kind}"


def message_of(error: BaseException) -> str:
    """Return an exception's message, even if its `__str__` raises."""
    try:
        return str(error)
    except BaseException:
        return "<exception str() failed>"  # as Python prints it


def typed_message(error: BaseException) -> str:
    """Return the last line of an exception's traceback: `ValueError: no such column`."""
    return f"{type(error).__name__}: {message_of(error)}"
