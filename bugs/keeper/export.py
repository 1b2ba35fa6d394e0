"""The catalogue for courses and slides: a row of text for each cage, as CSV or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from bugs.keeper.manifest import ExceptionSignature, Exhibit
from bugs.keeper.strict_json import to_json

COLUMNS = (
    "id",
    "title",
    "framework",
    "stage",
    "symptom",
    "fails_with",
    "repaired_when",
    "rules",
    "hint_1",
    "hint_2",
    "hint_3",
    "sources",
    "script",
    "solution",
    "page",
    "budget_s",
)


def as_json(exhibits: Iterable[Exhibit]) -> str:
    """Return one JSON object with a list ``exhibits``; rules and sources are lists."""
    return to_json({"version": 1, "exhibits": [_row(exhibit) for exhibit in exhibits]})


def as_csv(exhibits: Iterable[Exhibit]) -> str:
    """Return CSV as RFC 4180 has it, with a header; rules and sources are parted by spaces."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for exhibit in exhibits:
        row = _row(exhibit)
        writer.writerow({name: " ".join(cell) if isinstance(cell, list) else cell for name, cell in row.items()})
    return text.getvalue()


def _row(exhibit: Exhibit) -> dict[str, object]:
    sign = exhibit.signature
    threw = isinstance(sign, ExceptionSignature)
    cells = (
        exhibit.id,
        exhibit.title,
        exhibit.framework,
        exhibit.stage,
        exhibit.symptom,
        sign.exception if threw else str(sign),
        str(exhibit.recovery),
        list(exhibit.rules),
        *exhibit.hints,
        list(exhibit.sources),
        exhibit.script.relative_to(exhibit.root).as_posix(),
        exhibit.solution.relative_to(exhibit.root).as_posix(),
        exhibit.page,
        exhibit.budget_s,
    )
    return dict(zip(COLUMNS, cells, strict=True))
