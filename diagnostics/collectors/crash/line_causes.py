"""Recognises a cause by the message and the line together, where the message alone has several.

A bias that a layer was made without, a gradient that no backward pass gave, an option that was not passed: each is
None for one reason, which the line shows. A line that asks by name (``sample["input"]``) is no matter of axes.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from diagnostics.collectors.tracebacks.nature import package_of
from diagnostics.collectors.tracebacks.python_errors import MOST_READ, held
from diagnostics.collectors.tracebacks.unknown_errors import tables
from diagnostics.facts.crash import KnownFailure

from .frames import Crash

RULE = "mismatched-call"
FILE = Path(__file__).with_suffix(".toml")


def line_cause(crash: Crash) -> KnownFailure | None:
    """Recognise which value a line used, where one of its parts says why it is what it is.

    Returns:
        None if no row knows the message, or if the line shows no such part, or several.
    """
    message = crash.facts.message[:MOST_READ]
    for row in _rows() if crash.facts.frames else ():
        found = held(row, crash.facts, message)
        if found is not None and row.get("exception", crash.facts.exception) == crash.facts.exception:
            found["library"] = package_of(crash.facts.frames[-1])
            fixes = tuple(fix.format_map(found) for fix in row["fix"])
            told = row["cause"].format_map(found)
            return KnownFailure(row.get("rule", RULE), told, fixes, message.splitlines()[0])
    return None


@functools.cache
def _rows() -> tuple[dict[str, Any], ...]:
    """Return a row for each use with each cause of the same kind."""
    table = tables(FILE)
    return tuple(
        {
            **use,
            **cause,
            "pattern": use["message"],
            "line": use.get("before", "") + cause["pattern"] + use.get("after", ""),
            "single": "first" not in cause,
        }
        for use in table["uses"]
        for cause in table["causes"]
        if cause["of"] == use["of"]
    )
