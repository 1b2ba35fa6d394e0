"""The order of the book: every chapter has a number, every exhibit a chapter, the table of contents both."""

from __future__ import annotations

from pathlib import Path

import pytest

from book.builder.chapter_pages import CHAPTER_OF
from book.builder.outline import STATIONS, OutlineError, homes, load, numbers, ordered, table_of_contents
from bugs.zoo.keeper.catalogue import load_catalogue

ROOT = Path(__file__).parents[4]
EXHIBITS = list(load_catalogue(ROOT).values())
CHAPTERS = load(ROOT / "book" / "chapters")

WRITTEN = """\
---
chapter:
  purpose: Read it
  stations: [{station}]
  minutes: {minutes}
  level: first steps
  cages: ["04"]
  {extra}
---

{title}
"""
PLANNED = """\
[02_later]
title = "Later"
purpose = "Later"
stations = []
cages = ["{cage}"]
"""


def folder(
    tmp_path: Path,
    *,
    station: str = "loss",
    minutes: int = 5,
    title: str = "# A title",
    extra: str = "",
    cage: str = "05",
) -> Path:
    text = WRITTEN.format(station=station, minutes=minutes, title=title, extra=extra)
    (tmp_path / "01_now.md").write_text(text)
    (tmp_path / "planned.toml").write_text(PLANNED.format(cage=cage))
    return tmp_path


class TestLoad:
    def test_written_and_planned_chapters_come_in_the_order_of_their_numbers(self, tmp_path: Path) -> None:
        now, later = load(folder(tmp_path))
        assert (now.number, now.title, now.cages, now.file) == (1, "A title", ("04",), "chapters/01_now.ipynb")
        assert (now.place, now.shown, later.place) == (1, "1 · A title", 2)
        assert (later.number, later.title, later.file) == (2, "Later", "chapters/02_later.md")
        assert now.written
        assert not later.written

    @pytest.mark.parametrize(
        ("mistake", "message"),
        [
            ({"station": "lunch"}, "01_now: 'lunch' is no station; expected some of dataset, batch,"),
            ({"minutes": 0}, "01_now.md needs `minutes`, and a `level` of first steps, intermediate, advanced"),
            ({"title": "A title"}, '01_now.md needs a title: "# …", without a number'),
            ({"extra": "before: [7]"}, "01_now: `before` names chapter 7, and there is none"),
            ({"extra": "after: 7"}, "01_now: `after` names chapter 7, and there is none"),
        ],
    )
    def test_a_mistake_is_named(self, tmp_path: Path, mistake: dict[str, str | int], message: str) -> None:
        with pytest.raises(OutlineError) as raised:
            load(folder(tmp_path, **mistake))  # type: ignore[arg-type]
        assert str(raised.value).startswith(message)

    def test_two_chapters_of_one_number_are_named(self, tmp_path: Path) -> None:
        text = WRITTEN.format(station="loss", minutes=5, title="# A title", extra="")
        (folder(tmp_path) / "02_other.md").write_text(text)
        with pytest.raises(OutlineError, match="two chapters have the number 2: 02_other and 02_later"):
            load(tmp_path)

    def test_a_chapter_is_placed_after_the_one_it_names(self, tmp_path: Path) -> None:
        text = WRITTEN.format(station="loss", minutes=5, title="# A title", extra="after: 1").replace("04", "06")
        (folder(tmp_path) / "18_new.md").write_text(text)
        chapters = load(tmp_path)
        assert [(chapter.name, chapter.place) for chapter in chapters] == [
            ("01_now", 1),
            ("18_new", 2),
            ("02_later", 3),
        ]
        assert [chapter.number for chapter in chapters] == [1, 18, 2]


class TestNumbers:
    def test_an_exhibit_is_numbered_by_its_chapter_and_its_place(self) -> None:
        expected = {cage: f"{c.place}.{n}" for c in CHAPTERS for n, cage in enumerate(c.cages, 1)}
        assert numbers() == expected
        assert set(expected) == {exhibit.id for exhibit in EXHIBITS}
        assert [chapter.place for chapter in CHAPTERS] == list(range(1, len(CHAPTERS) + 1))


class TestHomes:
    def test_every_exhibit_has_one_chapter(self) -> None:
        found = homes(CHAPTERS, EXHIBITS)
        assert set(found) == {exhibit.id for exhibit in EXHIBITS}
        assert [exhibit.id for exhibit in ordered(CHAPTERS, EXHIBITS)] == [c for ch in CHAPTERS for c in ch.cages]

    def test_an_exhibit_without_a_chapter_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(OutlineError, match="01_wrong_dataset is among the `cages` of no chapter"):
            homes(load(folder(tmp_path)), EXHIBITS)

    def test_an_exhibit_of_two_chapters_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(OutlineError, match="cage 04 is among the `cages` of 01_now and of 02_later"):
            homes(load(folder(tmp_path, cage="04")), EXHIBITS)

    def test_a_cage_that_does_not_exist_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(OutlineError, match="02_later names cage 99, and there is none"):
            homes(load(folder(tmp_path, cage="99")), EXHIBITS)


class TestTableOfContents:
    def test_a_chapter_is_followed_by_its_cages(self, tmp_path: Path) -> None:
        frame = {"root": "index", "parts": [{"caption": "Chapters", "chapters": []}]}
        toc = table_of_contents(frame, load(folder(tmp_path)), EXHIBITS)
        assert toc["parts"][0]["chapters"] == [
            {"file": "chapters/01_now", "sections": [{"file": "exhibits/04_wrong_label_count"}]},
            {"file": "chapters/02_later", "sections": [{"file": "exhibits/05_nan_loss"}]},
        ]
        assert frame["parts"][0]["chapters"] == []  # type: ignore[index]


def test_the_map_has_a_chapter_for_every_station() -> None:
    stations = {chapter.number: chapter.stations for chapter in CHAPTERS}
    assert tuple(CHAPTER_OF) == STATIONS
    assert all(station in stations[number] for station, number in CHAPTER_OF.items())
