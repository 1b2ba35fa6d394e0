"""Says what an assertion that failed without a message proves, from the condition that its line shows."""

from __future__ import annotations

import re

from ..unknown_errors import entries, search

MOST_SHOWN = 160  # characters of a condition

_ASSERT = re.compile(
    r"assert\b\s*(?P<what>(?:[^,()\[\]]|\((?:[^()]|\([^()]{0,60}\)){0,99}\)|\[[^\[\]]{0,99}\]){1,120})"
)
_IN_BRACKETS = re.compile(r"\((?P<what>(?:[^()]|\([^()]{0,99}\)){0,160})\)")
_SEVERAL = re.compile(r" (?:or|and) ")


def condition_of(line: str) -> str | None:
    """Say which condition does not hold, and what that means; None if the line shows no condition.

    Args:
        line: source of the assertion, which may go on in the next line.
    """
    checked = _ASSERT.match(line)
    if checked is None:
        return None
    what = " ".join(checked["what"].split()).strip(" \\")[:MOST_SHOWN]
    shown, inner = what, _IN_BRACKETS.fullmatch(what)
    if inner is not None:
        what = inner["what"].strip()
    if what in ("", "isinstance", "all", "any", "len", "hasattr"):  # the condition goes on in the next line
        return None
    several = _SEVERAL.search(what) is not None
    matches = ((row["said"], search(row, what)) for row in entries("conditions") if not several)
    told = next((said.format_map(_held(found)) for said, found in matches if found), "Print its parts.")
    return f"The condition does not hold: {shown}. {told}"


def _held(found: re.Match[str]) -> dict[str, str]:
    return {name: (text or "").strip() for name, text in found.groupdict().items()}
