"""The page "Habits to copy": for each habit of the practitioner's list what to call, and an example."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from book.generated.teaching import Place, Point, links

AREA = "The practitioner's list"


@dataclass(frozen=True)
class Habit:
    """One habit.

    Attributes:
        point: the name of its teaching point.
        call: what it is done with, names in `diagnostics`.
        test: the file that tests it, from the root of the repository.
        example: code to copy.
    """

    point: str
    call: tuple[str, ...]
    test: str
    example: str


def habits(file: Path) -> list[Habit]:
    """Return the habits in the order of `book/habits.toml`."""
    tables = tomllib.loads(file.read_text("utf-8"))
    return [Habit(name, tuple(t["call"]), t["test"], t["example"].strip()) for name, t in tables.items()]


def habits_page(known: list[Habit], points: list[Point], where: Mapping[str, list[Place]]) -> str:
    """Return the page, in MyST.

    Args:
        known: all habits.
        points: all teaching points.
        where: by the name of a point, where it is taught.
    """
    named = {point.name: point.point for point in points}
    lines = [
        "# Habits to copy",
        "",
        f"Practitioners recommend the same {len(known)} habits again and again. Here, each of them is one call, "
        "which prints nothing if all is well, or a test to run before each training. This repository's tests run "
        "every example.",
        "",
        "| habit | call | taught in |",
        "|---|---|---|",
    ]
    for habit in known:
        calls = ", ".join(f"`diagnostics.{name}`" for name in habit.call)
        row = f"[{named[habit.point]}](#{habit.point}) | {calls} | {links(where[habit.point])}"
        lines.append(f"| {row} |")
    for habit in known:
        heading = named[habit.point].partition(":")[0]
        lines += [
            "",
            f"({habit.point})=",
            f"## {heading}",
            "",
            "```python",
            habit.example,
            "```",
            "",
            f"Tested in `{habit.test}`.",
        ]
    return "\n".join([*lines, ""])
