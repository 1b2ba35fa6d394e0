"""What the book has to teach and where it does, read from the tags of the cells that teach it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

TAG = "teaches-"


class TeachingError(ValueError):
    """A tag names no teaching point; `str()` says which, and where."""


@dataclass(frozen=True)
class Point:
    """One thing to be taught: its name in tags, the list it comes from, and what it is in a sentence."""

    name: str
    area: str
    point: str
    not_yet: bool = False


@dataclass(frozen=True)
class Place:
    """A cell that teaches: the page without its suffix, the page's title, and the heading above the cell."""

    page: str
    title: str
    heading: str


def points(file: Path) -> list[Point]:
    """Return the teaching points in the order of `book/teaching_points.toml`."""
    return [Point(name, **table) for name, table in tomllib.loads(file.read_text("utf-8")).items()]


def places(notebooks: Mapping[str, NotebookNode], known: list[Point]) -> dict[str, list[Place]]:
    """Return where each point is taught, by its name; one that no cell teaches has no place.

    Args:
        notebooks: by page without a suffix, executed or not, in the order of the book.
        known: all teaching points.

    Raises:
        TeachingError: a tag names no known point.
    """
    found: dict[str, list[Place]] = {point.name: [] for point in known}
    for page, notebook in notebooks.items():
        title = heading = ""
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                titles = re.findall(r"^(#+) (.+)$", cell.source, re.MULTILINE)
                title = next((words for level, words in titles if level == "#"), title)
                heading = titles[-1][1] if titles else heading
                continue
            for tag in cell.metadata.get("tags", []):
                if tag.startswith(TAG):
                    name = tag.removeprefix(TAG)
                    if name not in found:
                        raise TeachingError(f"{page}: the tag {tag!r} names no point of book/teaching_points.toml")
                    place = Place(page, title, heading)
                    if place not in found[name]:
                        found[name].append(place)
    return found


def taught_page(known: list[Point], where: Mapping[str, list[Place]]) -> str:
    """Return the page "What is taught where", in MyST."""
    done = sum(bool(where[point.name]) for point in known)
    lines = [
        "# What is taught where",
        "",
        f"The book aims to teach {len(known)} things. So far it teaches {done} of them: each is explained on a "
        "page, and run by a cell on it. This table is generated from the notebooks.",
        "",
    ]
    for area in dict.fromkeys(point.area for point in known):
        lines += [f"## {area}", "", "| point | taught in |", "|---|---|"]
        lines += [f"| {p.point} | {links(where[p.name])} |" for p in known if p.area == area]
        lines.append("")
    return "\n".join(lines)


def links(places: list[Place]) -> str:
    """Link the pages that teach a point, with the headings above their cells."""
    if not places:
        return "*not yet*"
    pages: dict[tuple[str, str], list[str]] = {}
    for place in places:
        pages.setdefault((place.page, place.title), []).append(place.heading)
    return "; ".join(
        f"[{title}]({page}.ipynb)" + "".join(f", *{heading}*" for heading in headings if heading != title)
        for (page, title), headings in pages.items()
    )
