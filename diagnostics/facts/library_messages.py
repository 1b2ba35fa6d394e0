"""What libraries told their user while a program ran: warnings, and log lines of level WARNING or above."""

from __future__ import annotations

from typing import Any

from diagnostics.facts.frozen import frozen
from diagnostics.facts.where import Where


@frozen
class LibraryMessage:
    """One message of a library.

    Attributes:
        library: that issued it: ``torch``, ``keras``.
        kind: the class of a warning, such as ``UserWarning``, or the level of a log line, such as ``WARNING``.
        text: its first characters, on one line.
        times: how often it was shown, whatever the numbers in it.
        where: the line of the program that led to it; None if there is none on the stack.
    """

    library: str
    kind: str
    text: str
    times: int = 1
    where: Where | None = None

    def __str__(self) -> str:
        """Render as `torch, UserWarning, at train.py:31, 12 times: Using a target size …`."""
        place = [] if self.where is None else [f"at {self.where}"]
        often = [f"{self.times:,} times"] if self.times > 1 else []
        return f"{', '.join([self.library, self.kind, *place, *often])}: {self.text}"

    def as_dict(self) -> dict[str, Any]:
        """Return the message in the layout of the JSON report."""
        where = self.where and {"file": self.where.file, "line": self.where.line, "function": self.where.function}
        return {
            "library": self.library,
            "kind": self.kind,
            "text": self.text,
            "times": self.times,
            "where": where,
        }
