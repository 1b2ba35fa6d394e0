"""The result of a check in a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from diagnostics.errors import CheckFailed, ends_at_the_caller

__tracebackhide__ = ends_at_the_caller

Record = Callable[["CheckResult"], None]


@dataclass(frozen=True)
class CheckResult:
    """The result of one check of a loader or of gradients.

    Attributes:
        check: its name.
        passed: whether the check passed.
        message: what was measured, with the numbers, and what it means.
        fix: what to change; empty if it passed.
        rule: the rule that describes this bug; None if there is none.
        numbers: the measured values.
    """

    check: str
    passed: bool
    message: str
    fix: str = ""
    rule: str | None = None
    numbers: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        """Say what was seen, and what to do."""
        lines = [f"{self.check}: {self.message}"]
        if self.fix:
            lines.append(f"What to change: {self.fix}")
        if self.rule is not None:
            lines.append(f"Read: diagnose rules {self.rule}")
        return "\n".join(lines)


class Checks:
    """The base class of all checks."""

    def __init__(self, record: Record | None = None) -> None:
        """Make the checks available.

        Args:
            record: takes every result, also of checks that fail.
        """
        self._record = record

    def _passed(self, check: str, message: str, **seen: object) -> CheckResult:
        return handed(CheckResult(check, True, f"{message}.", numbers=seen), self._record)

    def _failed(
        self,
        check: str,
        message: str,
        fix: str,
        rule: str | None = None,
        numbers: Mapping[str, object] | None = None,
    ) -> CheckResult:
        return handed(CheckResult(check, False, message, f"{fix}.", rule, numbers or {}), self._record)


def handed(result: CheckResult, record: Record | None) -> CheckResult:
    """Record a result, and return it if it passed.

    Raises:
        CheckFailed: the check failed.
    """
    if record is not None:
        record(result)
    if not result.passed:
        raise CheckFailed(str(result))
    return result
