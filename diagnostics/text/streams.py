"""Lets the standard output of a command take any character, whatever its encoding."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

_ALIKE = {
    0xA0: " ", 0xB7: "*", 0xD7: "x", 0x2013: "-", 0x2014: "-", 0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"',
    0x2022: "*", 0x2026: "...", 0x2190: "<-", 0x2192: "->", 0x2212: "-", 0x2248: "~", 0x2260: "!=", 0x2264: "<=",
    0x2265: ">=",
}  # fmt: skip
"""Signs that reports use, by their numbers: what they look like in ASCII."""


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_ALIKE)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


LENIENT = "diagnostics-ascii"
"""An error handler of codecs, by which what an encoding lacks becomes ASCII that looks like it, or an escape."""
codecs.register_error(LENIENT, _in_ascii)


@contextlib.contextmanager
def lenient_output() -> Iterator[None]:
    """Within, standard output takes any character, and swallows all if it is closed; then it is as it was.

    Not for a process that runs a user's script.
    """
    stream: Any = sys.stdout
    if stream is None or getattr(stream, "closed", False):
        with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
        return
    before = getattr(stream, "errors", None)
    if before is None or not hasattr(stream, "reconfigure"):
        yield
        return
    stream.reconfigure(errors=LENIENT)
    try:
        yield
    finally:
        _drop_unwritable(stream)
        stream.reconfigure(errors=before)


def _drop_unwritable(stream: Any) -> None:
    """Let go of what cannot be written: the interpreter would try at its end, and change the exit code."""
    try:
        stream.flush()
    except OSError:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
        stream.flush()
