"""Says of lines that a library logs in every run, and that people take for the cause, that they are none."""

from __future__ import annotations

from diagnostics.facts.crash import CrashFacts

from .unknown_errors import entries, search


def without_harmless(text: str) -> str:
    """Leave such lines out of a text, in which they may read like an error."""
    rows = entries("harmless")
    return "\n".join(line for line in text.split("\n") if not any(search(row, line) for row in rows))


def harmless(text: str) -> CrashFacts | None:
    """Take the last such line of a text without an error, with what it means; None if it has none."""
    for line in reversed(text.splitlines()):
        for row in entries("harmless"):
            if (found := search(row, line)) is not None:
                of_another = "Another message has the cause, if one is in the log."
                said = f"This line alone is no error. {row['said']} {of_another}"
                return CrashFacts("", found[0], (), live=False, nature=said)
    return None
