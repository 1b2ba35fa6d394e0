"""Findings from messages in which a library itself names a bug."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from diagnostics.engine.finding import Finding
from diagnostics.facts.library_messages import LibraryMessage
from diagnostics.rules.registry import all_rules

TABLE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Row:
    """A message that names a bug.

    Attributes:
        rule: whose finding it becomes.
        library: that issues it.
        pattern: of its text.
        says: the finding's message, with the pattern's groups in braces.
        fixes: the likeliest first.
    """

    rule: str
    library: str
    pattern: re.Pattern[str]
    says: str
    fixes: tuple[str, ...]


@functools.cache
def rows() -> tuple[Row, ...]:
    """Return the rows of the table."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return tuple(
        Row(row["rule"], row["library"], re.compile(row["pattern"]), row["says"], tuple(row["fix"]))
        for row in table["message"]
    )


def named_by_libraries(messages: Iterable[LibraryMessage]) -> tuple[Finding, ...]:
    """Return the findings of the messages that name a bug, one for each rule."""
    stages = {rule.name: rule.stage for rule in all_rules()}
    found: dict[str, Finding] = {}
    for message in messages:
        for row in rows():
            said = row.pattern.search(message.text) if message.library == row.library else None
            if said is not None and row.rule not in found:
                found[row.rule] = Finding(
                    row.rule,
                    "warning",
                    stages[row.rule],
                    row.says.format(**said.groupdict()),
                    row.fixes[0],
                    evidence={"library": message.library, "said": message.text, "times": message.times},
                    where=message.where,
                    alternatives=row.fixes[1:],
                )
    return tuple(found.values())
