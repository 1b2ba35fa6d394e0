r"""Compiles the TOML files of `diagnostics/collectors/crash/messages` into `table.json`, which every call reads.

$ python -m tools.compile_table

There is one file per rule, and one row per wording of an error:

    [[messages]]
    priority = 0
    exception = "ValueError"
    pattern = 'expected (?<wanted>\d{1,9}) rows, got (?<got>\d{1,9})'
    cause = "The table has {got} rows, and {wanted} are expected."
    fix = ["print(len(table))"]
    examples = ["expected 3 rows, got 4"]

Several wordings of one kind take its cause and fix from a table ``[kinds."the kind"]`` of the same file. What it
says of a value that some of them name, `named`, follows the cause where the pattern has a group `what`.

A row has a priority from 0 to 3, 1 unless it says otherwise. 0 is asked before all recognisers: a message that
is known in general names its cause. 1 is an ordinary wording, 2 one that several causes share, and 3 a sentence
that is recognised without its numbers. Within a priority the more specific row is asked first: one that a
recogniser reads, then one that frames or words beside it must confirm, then the one with more fixed characters.

A pattern is a regular expression that Python's `re` and JavaScript's `RegExp` with the flag ``u`` read alike. It
is written as JavaScript's, with ``(?<name>...)`` for a group, and without lookbehind, inline flags, back
references, ``$`` and a bare dot. Repetitions of wide classes are bounded, so that no text takes quadratic time.
"""

from __future__ import annotations

import json
import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import tomllib
from pathlib import Path
from typing import Any

from diagnostics.collectors.crash.messages.table import TABLE, python_pattern

FOLDER = TABLE.parent
_MARKED = re.compile(r"`((?:[\w =,-]|\\[.()])+)`(?![?*{])")


def compiled() -> str:
    """Return the table as JSON: one row a line, in the order in which the rows are asked."""
    rows = [_row(file.stem, row) for file in sorted(FOLDER.glob("*.toml")) for row in _messages(file)]
    rows.sort(key=_order)
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"


def _messages(file: Path) -> list[dict[str, Any]]:
    table = tomllib.loads(file.read_text("utf-8"))
    return [_explained(row, table.get("kinds", {}).get(row.get("kind"))) for row in table["messages"]]


def _explained(row: dict[str, Any], kind: dict[str, Any] | None) -> dict[str, Any]:
    if kind is None:
        return row
    named = kind.get("named", "") if "(?<what>" in row["pattern"] else ""
    return {**row, "cause": f"{kind['cause']}{named}", "fix": kind["fix"]}


def _row(rule: str, row: dict[str, Any]) -> dict[str, Any]:
    # A page that shows a message as Markdown loses its backticks, and people who retype it write quotes.
    pattern = _MARKED.sub(r"""[`'"]?\1[`'"]?""", row["pattern"])
    parsed = parser.parse(python_pattern(pattern), re.ASCII)
    return {"rule": rule, **row, "pattern": pattern, "literals": literals(parsed)}


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    parsed = parser.parse(python_pattern(row["pattern"]), re.ASCII)
    confirmed = any(key in row for key in ("within", "at", "beside"))
    return (
        row.get("priority", 1),
        "recogniser" not in row,
        not confirmed,
        -fixed(parsed),
        row["rule"],
        row["pattern"],
    )


def literals(parsed: Any) -> list[str]:
    """Return words of which every match holds at least one, as long as possible; one empty word if none do."""
    best: list[str] = [""]
    run = ""
    for kind, value in [*parsed, (None, None)]:
        if kind is op.LITERAL:
            run += chr(value)
            continue
        best, run = max(best, [run], key=_worth), ""
        if kind is op.SUBPATTERN:
            best = max(best, literals(value[3]), key=_worth)
        elif kind is op.BRANCH:
            best = max(best, [word for branch in value[1] for word in literals(branch)], key=_worth)
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT) and value[0] > 0:
            best = max(best, literals(value[2]), key=_worth)
    return list(dict.fromkeys(best))


def _worth(words: list[str]) -> tuple[int, int]:
    return min(map(len, words)), -len(words)


def fixed(parsed: Any) -> int:
    """Count the fixed characters of the shortest match of a pattern: the more, the more specific it is."""
    count = 0
    for kind, value in parsed:
        if kind is op.LITERAL:
            count += 1
        elif kind is op.SUBPATTERN:
            count += fixed(value[3])
        elif kind is op.BRANCH:
            count += min(map(fixed, value[1]))
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            count += value[0] * fixed(value[2])
    return count


if __name__ == "__main__":
    TABLE.write_text(compiled(), "utf-8")
