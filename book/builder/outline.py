"""The order of the book: its chapters, the cages that belong to each, and the table of contents made from them.

A chapter is `book/chapters/NN_name.md`, a notebook source whose front matter holds a mapping `chapter`.
"""

from __future__ import annotations

import copy
import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bugs.zoo.keeper.catalogue import Exhibit

STATIONS = ("dataset", "batch", "forward", "loss", "backward", "step", "evaluation")  # of the pipeline, in order
LEVELS = ("first steps", "intermediate", "advanced")
FOLDER = Path(__file__).parents[1] / "chapters"
CHAPTERS = "Chapters"  # caption of the part of _toc.yml that the chapters fill
MYSTERIES = "mysteries/index"  # entry of _toc.yml whose sections are the solutions


class OutlineError(ValueError):
    """Chapters that do not make an order; `str()` says which file, what was expected, and what is there."""


@dataclass(frozen=True)
class Chapter:
    """One chapter.

    Attributes:
        name: its file, without the suffix: "02_the_walk".
        number: of its file, which readers see, too: its place in the book, from 1.
        title: without the number.
        purpose: what the reader learns to do: an infinitive without "to", and without a full stop.
        stations: the stations of the pipeline that it is about, of `STATIONS`.
        cages: ids of the exhibits that belong to it, in the order in which they are read.
        also: ids of exhibits of other chapters that it uses.
        minutes: to read it and do its exercises.
        level: one of `LEVELS`.
        before: numbers of the chapters to read first.
        mystery: name of its unlabelled script in `book/mysteries`, without the suffix; empty if it has none.
    """

    name: str
    number: int
    title: str
    purpose: str
    stations: tuple[str, ...]
    cages: tuple[str, ...]
    also: tuple[str, ...] = ()
    minutes: int = 0
    level: str = ""
    before: tuple[int, ...] = ()
    mystery: str = ""

    @property
    def shown(self) -> str:
        """Return its number and title, as readers see them."""
        return f"{self.number} · {self.title}"

    @property
    def page(self) -> str:
        """Its page in the book, without a suffix."""
        return f"chapters/{self.name}"

    @property
    def file(self) -> str:
        """Its page's file in the folder that Jupyter Book reads."""
        return f"{self.page}.ipynb"


def load(folder: Path) -> list[Chapter]:
    """Return the chapters in their order.

    Args:
        folder: `book/chapters`.

    Raises:
        OutlineError: they are not numbered from 1 on, or one says something that cannot be used.
    """
    chapters = [_written(source) for source in sorted(folder.glob("[0-9]*.md"))]
    for one, other in itertools.pairwise(chapters):
        if one.number == other.number:
            raise OutlineError(f"two chapters have the number {one.number}: {one.name} and {other.name}")
    for expected, chapter in enumerate(chapters, 1):
        if chapter.number != expected:
            raise OutlineError(f"there is no chapter {expected}: {chapter.name} comes in its place")
        if missing := [number for number in chapter.before if not 1 <= number <= len(chapters)]:
            raise OutlineError(f"{chapter.name}: `before` names chapter {missing[0]}, and there is none")
    return chapters


@functools.cache
def numbers() -> Mapping[str, str]:
    """Return the number of each exhibit that readers see, by id: "3.1" is the first of the third chapter."""
    return {id: f"{each.number}.{place}" for each in load(FOLDER) for place, id in enumerate(each.cages, 1)}


def shown(exhibit: Exhibit) -> str:
    """Return the number and the title of an exhibit, as readers see them."""
    return f"{numbers()[exhibit.id]} · {exhibit.title}"


def homes(chapters: Iterable[Chapter], exhibits: Sequence[Exhibit]) -> dict[str, Chapter]:
    """Return the chapter of each exhibit, by the exhibit's id.

    Raises:
        OutlineError: an exhibit has no chapter, or two; or a chapter names a cage that does not exist.
    """
    found: dict[str, Chapter] = {}
    ids = {exhibit.id for exhibit in exhibits}
    for chapter in chapters:
        if unknown := [cage for cage in (*chapter.cages, *chapter.also) if cage not in ids]:
            raise OutlineError(f"{chapter.name} names cage {unknown[0]}, and there is none of that number")
        for cage in chapter.cages:
            if cage in found:
                raise OutlineError(f"cage {cage} is among the `cages` of {found[cage].name} and of {chapter.name}")
            found[cage] = chapter
    if homeless := [exhibit.folder for exhibit in exhibits if exhibit.id not in found]:
        raise OutlineError(f"{homeless[0]} is among the `cages` of no chapter: name it in book/chapters")
    return found


def ordered(chapters: Iterable[Chapter], exhibits: Iterable[Exhibit]) -> list[Exhibit]:
    """Return the exhibits in the order of the chapters."""
    by_id = {exhibit.id: exhibit for exhibit in exhibits}
    return [by_id[cage] for chapter in chapters for cage in chapter.cages]


def table_of_contents(
    frame: Mapping[str, Any], chapters: Sequence[Chapter], exhibits: Iterable[Exhibit]
) -> dict[str, Any]:
    """Return `_toc.yml` with its chapters, each with its cages, and with the solutions of its mysteries.

    Args:
        frame: the file as it is written, in which the part `CHAPTERS` and the entry `MYSTERIES` are empty.
        chapters: in their order.
        exhibits: all that the chapters name.
    """
    pages = {exhibit.id: exhibit.page for exhibit in exhibits}
    full = copy.deepcopy(dict(frame))
    for part in full["parts"]:
        if part["caption"] == CHAPTERS:
            part["chapters"] = [_entry(chapter.page, [pages[c] for c in chapter.cages]) for chapter in chapters]
        for entry in part["chapters"]:
            if entry.get("file") == MYSTERIES:
                entry |= _entry(MYSTERIES, [f"mysteries/{c.mystery}" for c in chapters if c.mystery])
    return full


def _entry(page: str, sections: Sequence[str]) -> dict[str, Any]:
    below = {"sections": [{"file": section} for section in sections]} if sections else {}
    return {"file": page, **below}


def _written(source: Path) -> Chapter:
    text = source.read_text("utf-8")
    front, _, body = text.removeprefix("---\n").partition("\n---\n")
    table = yaml.safe_load(front).get("chapter") if text.startswith("---\n") else None
    if not isinstance(table, dict):
        raise OutlineError(f"{source.name} needs a mapping `chapter` in its front matter; see a neighbour")
    title = re.search(r"^# (.+)$", body, re.MULTILINE)
    if title is None:
        raise OutlineError(f'{source.name} needs a title: "# …", without a number')
    chapter = _chapter(source.stem, table, title[1], source)
    if not chapter.minutes or chapter.level not in LEVELS:
        raise OutlineError(f"{source.name} needs `minutes`, and a `level` of {', '.join(LEVELS)}")
    if chapter.mystery and not (source.parents[1] / "mysteries" / f"{chapter.mystery}.py").is_file():
        raise OutlineError(f"{source.name} names the mystery {chapter.mystery}, which is not in book/mysteries")
    return chapter


def _chapter(name: str, table: Mapping[str, Any], title: str, source: Path) -> Chapter:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    try:
        chapter = Chapter(name=name, number=int(name[:2]), title=title, **values)
    except (TypeError, ValueError) as error:
        raise OutlineError(f"{source.name}, chapter {name}: {error}") from None
    if unknown := [station for station in chapter.stations if station not in STATIONS]:
        raise OutlineError(f"{name}: {unknown[0]!r} is no station; expected some of {', '.join(STATIONS)}")
    return chapter
