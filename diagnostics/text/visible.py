"""Makes strings of the user's program safe to show: without control sequences, and of limited length."""

from __future__ import annotations

import re
from html import escape

MAX_CHARACTERS = 4_000  # characters of one string: two screens
# Control characters except tab and newline, direction marks (with which a path looks like another), line
# separators, zero-width characters, and halves of surrogate pairs. Joiners (U+200C, U+200D) stay: Persian and
# emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Return `text` with control and direction characters as escapes: ESC becomes ``\x1b``."""
    return _UNSEEN.sub(lambda found: _escape(ord(found[0])), text.replace("\r\n", "\n"))


def shortened(text: str, most: int = MAX_CHARACTERS) -> str:
    """Return `text`, or its first two thirds and its end with the number of characters left out between them."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]} … [{len(text) - head - tail:,} of {len(text):,} characters left out] … {text[-tail:]}"


def escaped(text: str) -> str:
    """Return `text` for a page of HTML: visible, shortened, and with HTML's own characters escaped."""
    return escape(visible(shortened(text)))


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
