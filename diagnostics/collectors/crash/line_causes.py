"""Recognises a cause by the message and the line together, where the message alone has several.

A bias that a layer was made without, a gradient that no backward pass gave, an option that was not passed: each is
None for one reason, which the line shows. A line that asks by name (``sample["input"]``) is no matter of axes.
"""

from __future__ import annotations

import re
from pathlib import Path

from diagnostics.collectors.tracebacks.nature import package_of
from diagnostics.collectors.tracebacks.unknown_errors import compiled, tables
from diagnostics.facts.crash import FrameFacts, KnownFailure

from .frames import Crash

MOST_READ = 400  # characters of the line, and of the message
RULE = "mismatched-call"
FILE = Path(__file__).with_suffix(".toml")


def line_cause(crash: Crash) -> KnownFailure | None:
    """Recognise which value a line used, where one of its parts says why it is what it is.

    Returns:
        None if no row knows the message, or if the line shows no such part, or several.
    """
    facts = crash.facts
    line = (facts.frames[-1].code or "")[:MOST_READ] if facts.frames else ""
    message = facts.message[:MOST_READ]
    for use in tables(FILE)["uses"] if line else ():
        said = re.search(use["message"], message)
        if said is None or use.get("exception", facts.exception) != facts.exception:
            continue
        name = re.escape(said.groupdict().get("name", ""))
        for cause in tables(FILE)["causes"]:
            if "function" in cause and not _is_librarys(facts.frames[-1], cause["function"]):
                continue
            pattern = f"{use.get('before', '')}{cause['pattern']}{use.get('after', '')}".replace("@name@", name)
            if cause["of"] == use["of"] and (held := _held(pattern, line, "first" in cause)) is not None:
                held["library"] = package_of(facts.frames[-1])
                fixes = tuple(fix.format_map(held) for fix in cause["fix"])
                told = cause["cause"].format_map(held)
                return KnownFailure(cause.get("rule", RULE), told, fixes, message.splitlines()[0])
        return None
    return None


def _is_librarys(frame: FrameFacts, function: str) -> bool:
    return not frame.yours and compiled(function).fullmatch(frame.function.rpartition(".")[2]) is not None


def _held(pattern: str, line: str, first: bool) -> dict[str, str] | None:
    """Return what the groups of a pattern hold; None if the line shows no such value, or several."""
    matches = {found["held"]: found for found in reversed(list(re.finditer(pattern, line)))}
    if not matches or (len(matches) > 1 and not first):
        return None
    return {group: text or "" for group, text in list(matches.values())[-1].groupdict().items()}
