"""What a tool answers about one script: its findings, each kind counted, with the words of the first."""

from __future__ import annotations

from typing import Any

LONGEST = 600  # characters of a message that are kept: its end, where a tool says what it has found last


class Answers:
    """Collects what a tool says."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Any]] = {}

    def add(self, kind: str, severity: str, message: str) -> None:
        """Note one finding.

        Args:
            kind: of it, the same for the same complaint about another layer or step.
            severity: "error", "warning" or "note".
            message: the tool's words.
        """
        known = self._kinds.setdefault(
            kind, {"kind": kind, "severity": severity, "message": message[-LONGEST:], "times": 0}
        )
        known["times"] += 1

    def to_list(self) -> list[dict[str, Any]]:
        """Return one row a kind, in the order in which they came."""
        return list(self._kinds.values())
