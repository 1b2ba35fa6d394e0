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
  cages: ["{cage}"]
  {extra}
---

{title}
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
    text = WRITTEN.format(station=station, minutes=minutes, title=title, cage="04", extra=extra)
    (tmp_path / "01_now.md").write_text(text)
    later = WRITTEN.format(station="loss", minutes=7, title="# Later", cage=cage, extra="")
    (tmp_path / "02_later.md").write_text(later)
    return tmp_path


class TestLoad:
    def test_chapters_come_in_the_order_of_their_numbers(self, tmp_path: Path) -> None:
        now, later = load(folder(tmp_path))
        assert (now.number, now.title, now.cages, now.file) == (1, "A title", ("04",), "chapters/01_now.ipynb")
        assert (later.number, later.shown, later.file) == (2, "2 · Later", "chapters/02_later.ipynb")

    @pytest.mark.parametrize(
        ("mistake", "message"),
        [
            ({"station": "lunch"}, "01_now: 'lunch' is no station; expected some of dataset, batch,"),
            ({"minutes": 0}, "01_now.md needs `minutes`, and a `level` of first steps, intermediate, advanced"),
            ({"title": "A title"}, '01_now.md needs a title: "# …", without a number'),
            ({"extra": "before: [7]"}, "01_now: `before` names chapter 7, and there is none"),
        ],
    )
    def test_a_mistake_is_named(self, tmp_path: Path, mistake: dict[str, str | int], message: str) -> None:
        with pytest.raises(OutlineError) as raised:
            load(folder(tmp_path, **mistake))  # type: ignore[arg-type]
        assert str(raised.value).startswith(message)

    def test_two_chapters_of_one_number_are_named(self, tmp_path: Path) -> None:
        later = folder(tmp_path) / "02_later.md"
        (tmp_path / "02_other.md").write_text(later.read_text())
        with pytest.raises(OutlineError, match="two chapters have the number 2: 02_later and 02_other"):
            load(tmp_path)

    def test_a_missing_number_is_named(self, tmp_path: Path) -> None:
        later = folder(tmp_path) / "02_later.md"
        later.rename(tmp_path / "03_later.md")
        with pytest.raises(OutlineError, match="there is no chapter 2: 03_later comes in its place"):
            load(tmp_path)


class TestNumbers:
    def test_an_exhibit_is_numbered_by_its_chapter_and_its_place(self) -> None:
        expected = {cage: f"{c.number}.{n}" for c in CHAPTERS for n, cage in enumerate(c.cages, 1)}
        assert numbers() == expected
        assert set(expected) == {exhibit.id for exhibit in EXHIBITS}


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
