"""Tables for courses and slides, as CSV or JSON: the catalogue, a row an exhibit; and the results of a class."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from bugs.zoo.keeper.manifest import ExceptionSignature, Exhibit
from bugs.zoo.keeper.strict_json import to_json

CATALOGUE = (
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
RESULTS = (
    "learner",
    "id",
    "kind",
    "title",
    "state",
    "passed",
    "reservations",
    "why_not",
    "checks",
    "hints",
    "solution_seen",
    "begun",
)
Row = Mapping[str, object]


def as_json(name: str, rows: Iterable[Row]) -> str:
    """Return one JSON object with a list of the given name; lists stay lists."""
    return to_json({"version": 1, name: list(rows)})


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """Return CSV as RFC 4180 has it, with a header; the parts of a list are separated by spaces."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: " ".join(cell) if isinstance(cell, list) else cell for name, cell in row.items()})
    return text.getvalue()


def catalogue(exhibits: Iterable[Exhibit]) -> list[dict[str, object]]:
    """Return a row for each exhibit."""
    return [_row(exhibit) for exhibit in exhibits]


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
    return dict(zip(CATALOGUE, cells, strict=True))
