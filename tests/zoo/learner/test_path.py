"""Where to go on, in the order of the book."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from book.builder.outline import load
from bugs.zoo.keeper.catalogue import load_catalogue
from bugs.zoo.learner.path import ORDER, in_order, next_step, read_course
from bugs.zoo.learner.progress import Cage, Progress

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = load_catalogue(ROOT)
DONE = Cage(begun="2026-11-23 10:00", repaired="2026-11-23 10:30")
COURSE = read_course(ROOT)


def test_the_order_is_the_books() -> None:
    assert [id for chapter in load(ROOT / "book" / "chapters") for id in chapter.cages] == list(ORDER)


def test_a_cage_that_the_book_does_not_place_comes_last() -> None:
    newer = replace(CATALOGUE["01"], id="99")
    assert in_order({"99": newer} | CATALOGUE)[-1].id == "99"


def test_the_first_cage_is_that_of_the_first_chapter() -> None:
    step = next_step(CATALOGUE, Progress())
    assert step.command == "python -m bugs try 04"
    assert step.said == (
        "The next exhibit is 04, a script that fails with an exception: IndexError: Target 2 is out of bounds."
    )


def test_what_was_begun_comes_first() -> None:
    step = next_step(CATALOGUE, Progress({"04": DONE, "12": Cage(begun="today", wrong="rules, metric")}))
    assert step.command == "python -m bugs check 12"
    assert "still wrong at the last check: rules, metric" in step.said


def test_at_the_end_there_is_a_surprise() -> None:
    step = next_step(CATALOGUE, Progress(dict.fromkeys(CATALOGUE, DONE)))
    assert (step.exhibit, step.command) == (None, "python -m bugs surprise")


class TestAfterAChapter:
    def after(self, passed: str, *done: str) -> tuple[str, str]:
        step = next_step(CATALOGUE, Progress(dict.fromkeys((*done, passed), DONE)), COURSE, passed)
        return tuple(command.removeprefix("python -m bugs try ") for command in (step.command, step.short))

    def test_the_short_path_is_that_of_the_first_page(self) -> None:
        assert COURSE.short == ["chapter-01", "chapter-02", "chapter-03", "chapter-04", "chapter-10", "04"]

    def test_its_own_mystery_is_next(self) -> None:
        assert self.after("chapter-04") == ("mystery-04", "chapter-10")
        assert self.after("chapter-10") == ("mystery-10", "04")
        assert self.after("chapter-05") == ("mystery-05", "")

    def test_after_the_mystery_comes_the_next_chapter(self) -> None:
        assert self.after("mystery-04") == ("chapter-05", "chapter-10")
        assert self.after("mystery-01") == ("chapter-02", "")  # the short path's, too

    def test_chapters_have_the_order_of_the_book_and_not_that_of_their_numbers(self) -> None:
        assert self.after("mystery-11") == ("chapter-12", "")
        assert self.after("mystery-12") == ("chapter-13", "")

    def test_what_is_solved_is_passed_over(self) -> None:
        assert self.after("chapter-01", "mystery-01", "chapter-02") == ("mystery-02", "chapter-03")

    def test_after_the_last_one_come_the_exhibits(self) -> None:
        words = [*COURSE.titles, *COURSE.mysteries.values()]
        assert self.after(words[-1], *words) == ("04", "")

    def test_next_goes_on_where_the_learner_was(self) -> None:
        step = next_step(
            CATALOGUE, Progress({"04": DONE, "chapter-02": replace(DONE, repaired="2026-11-24")}), COURSE
        )
        assert step.command == "python -m bugs try mystery-02"
        step = next_step(
            CATALOGUE, Progress({"chapter-02": DONE, "04": replace(DONE, repaired="2026-11-24")}), COURSE
        )
        assert step.command == "python -m bugs try 01"
        step = next_step(CATALOGUE, Progress({"chapter-02": DONE, "mystery-02": Cage(begun="today")}), COURSE)
        assert (step.said, step.command) == ("Go on with mystery-02.", "python -m bugs check mystery-02")
