"""The table of messages for a program that is not Python: the book's page reads it as JSON."""

from __future__ import annotations

import inspect
import re
from typing import Any

from diagnostics.collectors.crash.messages.table import all_messages
from diagnostics.rules.registry import all_rules

_INSTEAD = re.compile(r"^## Instead\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def message_table() -> list[dict[str, Any]]:
    """Return every known wording of an error, in the order in which they are to be compared with a message.

    Each row holds plain values that JSON can hold:

    - ``rule``, its ``title``, and its ``fix``: the section "Instead" of its page, in Markdown
    - ``pattern``: for ``new RegExp(pattern, "u")``, to be searched for in the exception's message
    - ``exception``: class name that comes with it; ``framework``; ``since`` and ``until``: versions, or null
    - ``proves``: what the message proves; ``unknown``: what the text cannot tell; either may be empty
    - ``cause`` and ``fixes``: of a row that explains itself, ``{name}`` standing for a group; empty otherwise
    - ``needs``: what else must be known for the rule to be named; empty if the message alone is enough
    - ``within``: pattern of the files of which one must be in the traceback, if there is one; empty if any will do
    - ``at``: pattern of the last frame's file; empty if any will do
    """
    pages = {rule.name: (rule.summary(), _instead(inspect.getdoc(rule) or "")) for rule in all_rules()}
    return [
        {
            "rule": row.rule,
            "title": pages[row.rule][0],
            "fix": pages[row.rule][1],
            "pattern": row.pattern,
            "exception": row.exception,
            "framework": row.framework,
            "since": row.since,
            "until": row.until,
            "proves": row.proves,
            "unknown": row.unknown,
            "cause": row.cause,
            "fixes": list(row.fix),
            "needs": row.needs,
            "within": row.within,
            "at": row.at,
        }
        for row in all_messages()
    ]


def _instead(page: str) -> str:
    found = _INSTEAD.search(page)
    return "" if found is None else found["text"].strip()
