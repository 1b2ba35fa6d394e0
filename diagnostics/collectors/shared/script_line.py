"""Finds the line of the script from which a library was called, or where a function of it begins."""

from __future__ import annotations

import sys
from typing import Any

from diagnostics.facts.where import Where, is_user_code, shorten

FRAMES = 64  # of a stack that are searched for the script's own


def defined_at(function: Any) -> Where | None:
    """Return the line where a function of the script begins; None for any other."""
    code = getattr(function, "__code__", None)
    if code is None or not is_user_code(code.co_filename):
        return None
    return Where(shorten(code.co_filename), code.co_firstlineno, code.co_qualname)


def script_line() -> Where | None:
    """Return the innermost line of the script on the stack; None if it is not found."""
    frame: Any = sys._getframe(1)
    for _ in range(FRAMES):
        if frame is None:
            return None
        if is_user_code(frame.f_code.co_filename):
            return Where(shorten(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None
