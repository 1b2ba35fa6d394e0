"""Reads which expression a line of source uses."""

from __future__ import annotations

import re

_EXPRESSION = r"(?P<held>[A-Za-z_]\w*(?:\.\w+|\[[^\[\]]{0,60}\]|\([^()]{0,60}\))*)"


def expression_before(line: str, ending: str) -> str | None:
    """Return the one expression of a line that stands before `ending`, a pattern; None if none, or several."""
    names = {found["held"] for found in re.finditer(f"{_EXPRESSION}{ending}", line)}
    return names.pop() if len(names) == 1 else None
