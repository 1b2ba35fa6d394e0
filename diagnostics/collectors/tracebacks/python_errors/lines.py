"""Reads which expression a line of source uses."""

from __future__ import annotations

import re

_EXPRESSION = r"(?<!\w)(?P<held>[A-Za-z_]\w{0,99}(?:\.\w{1,99}|\[[^\[\]]{0,60}\]|\([^()]{0,60}\)){0,20})"

_NESTED = re.compile(r"(?<![\w.])(?P<held>[A-Za-z_][\w.]{0,60})\[[A-Za-z_][\w.]{0,60}\[[^\[\]]{1,40}\]\]")
_BY_VARIABLE = re.compile(r"(?<![\w.])(?P<held>[A-Za-z_][\w.]{0,60})\[(?P<key>[A-Za-z_]\w{0,60})\]")


def expression_before(line: str, ending: str) -> str | None:
    """Return the one expression of a line that stands before `ending`, a pattern; None if none, or several."""
    names = {found["held"] for found in re.finditer(f"{_EXPRESSION}{ending}", line)}
    return names.pop() if len(names) == 1 else None


def outermost(line: str) -> str | None:
    """Return what is indexed by an index of its own, ``a`` in ``a[b[i]]``, or both of ``a[key] == b[key]``.

    Returns:
        None if the line shows neither.
    """
    nested = {found["held"] for found in _NESTED.finditer(line)}
    if len(nested) == 1:
        return nested.pop()
    by_key: dict[str, list[str]] = {}
    for found in _BY_VARIABLE.finditer(line):
        by_key.setdefault(found["key"], []).append(found["held"])
    same = [names for names in by_key.values() if len(set(names)) == 2]
    return " or ".join(dict.fromkeys(same[0])) if len(same) == len(by_key) == 1 else None
