"""Finds the line of the script from which a library was called, or where a function of it begins."""

from __future__ import annotations

import linecache
import sys
from dataclasses import replace
from itertools import islice
from types import FrameType
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
    frame = script_frame()
    return None if frame is None else place_of(frame)


def script_frame() -> FrameType | None:
    """Return the innermost frame of the script on the stack; None if it is not found."""
    frame: Any = sys._getframe(1)
    for _ in range(FRAMES):
        if frame is None or is_user_code(frame.f_code.co_filename):
            return frame  # type: ignore[no-any-return]
        frame = frame.f_back
    return None


def place_of(frame: FrameType) -> Where:
    """Return the line that a frame runs, with the range of the expression if Python keeps it."""
    code, line = frame.f_code, frame.f_lineno
    where = Where(shorten(code.co_filename), line, code.co_name)
    positions = islice(code.co_positions(), frame.f_lasti // 2, None)
    begin, end, start, stop = next(positions, (None, None, None, None))
    if begin != line or end is None or start is None or stop is None:
        return where
    return replace(
        where,
        end_line=end,
        column=column_of(code.co_filename, line, start),
        end_column=column_of(code.co_filename, end, stop),
    )


def column_of(file: str, line: int, offset: int) -> int:
    """Return the column, in characters from 1, of a byte in a line: Python counts bytes in UTF-8, from 0."""
    text = linecache.getline(file, line)
    return (len(text.encode()[:offset].decode(errors="ignore")) if text else offset) + 1
