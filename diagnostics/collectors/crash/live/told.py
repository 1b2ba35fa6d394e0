"""Tells in sentences what the expression of a live exception held, and which check refused it."""

from __future__ import annotations

from diagnostics.facts.crash import CrashFacts
from diagnostics.text.join import listed


def values_told(crash: CrashFacts) -> str:
    """Return a sentence about the values of the failed expression; empty if none is known."""
    failed = crash.failed
    return "" if failed is None or not failed.values else f"In {failed.code}, {_held(failed.values)}."


def told(crash: CrashFacts) -> str:
    """Return what is known of the values of the expression, and of the check that raised; empty if nothing is."""
    failed = crash.failed
    if failed is None:
        return ""
    values = "" if is_check(crash) else values_told(crash)
    if failed.condition is None or not failed.condition_values:
        return values
    truth = "holds" if failed.raises_if else "does not hold"
    return f"{values} It was raised because {failed.condition} {truth}: {_held(failed.condition_values)}.".strip()


def is_check(crash: CrashFacts) -> bool:
    """Whether the user's own line raised it."""
    return crash.failed is not None and crash.failed.code.startswith(("raise", "assert"))


def _held(values: tuple[tuple[str, str], ...]) -> str:
    return listed(f"{source} is {what}" for source, what in values)
