"""Everything `diagnostics` raises on purpose, and how it names what it was given.

DiagnosticsError
├── InvalidInput       the arguments are not something that can be looked at
└── FindingsPresent    raised by `Report.raise_if`, and only when asked
"""

from __future__ import annotations


class DiagnosticsError(Exception):
    """The root of the tree above."""


class InvalidInput(DiagnosticsError, ValueError):
    """Says what was given, what was expected, and what to do."""


class FindingsPresent(DiagnosticsError):
    """A report holds findings at or above the severity that was asked about."""


def what(value: object) -> str:
    """Say what was given instead: `None`, `a str`, `the class Linear, not an object of it`."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}, not an object of it"
    kind = type(value).__name__
    return f"an {kind}" if kind[0] in "AEIOUaeiou" else f"a {kind}"


def message_of(error: BaseException) -> str:
    """Return what an exception says, whatever its `__str__` does."""
    try:
        return str(error)
    except BaseException:
        return "<exception str() failed>"  # as Python prints it


def typed_message(error: BaseException) -> str:
    """Return the last line of an exception's traceback: `ValueError: no such column`."""
    return f"{type(error).__name__}: {message_of(error)}"
