"""Everything `diagnostics` raises on purpose.

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
