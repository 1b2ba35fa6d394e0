"""Cuts what no rule needs out of huge messages, so that reading them ends: their beginning and their end stay."""

from __future__ import annotations

import re

MAX_CHARACTERS = 100_000  # characters of a message: a checkpoint that lists a thousand parameters
KEPT = 40_000  # of a longer one, at either end
END = 256  # characters of a long word that are kept, at either end
_LONG = re.compile(r"(?<!\S)\S{769,}|(?<!\s)\s{769,}")
"""A sequence of DNA, a hex dump, a key: no path and no name is that long, and the time of a pattern that looks at
each part of a word grows with the square of its length."""


def without_long_words(text: str) -> str:
    """Return a text in which of each huge word, and of each huge gap, only the ends are left."""
    return _LONG.sub(lambda found: f"{found[0][:END]}…{found[0][-END:]}", text)


def bounded(message: str) -> str:
    """Return an exception's message in a length that every pattern can search; the same for its own result."""
    if len(message) > MAX_CHARACTERS:
        message = f"{message[:KEPT]}\n…\n{message[-KEPT:]}"
    return without_long_words(message)
