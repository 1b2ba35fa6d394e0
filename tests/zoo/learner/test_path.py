"""Where to go on, in the order of the book."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from book.builder.outline import load
from bugs.zoo.keeper.catalogue import load_catalogue
from bugs.zoo.learner.path import ORDER, in_order, next_step
from bugs.zoo.learner.progress import Cage, Progress

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = load_catalogue(ROOT)
DONE = Cage(begun="2026-11-23 10:00", repaired="2026-11-23 10:30")


def test_the_order_is_the_books() -> None:
    assert [id for chapter in load(ROOT / "book" / "chapters") for id in chapter.cages] == list(ORDER)


def test_a_cage_that_the_book_does_not_place_comes_last() -> None:
    newer = replace(CATALOGUE["01"], id="99")
    assert in_order({"99": newer} | CATALOGUE)[-1].id == "99"


def test_the_first_cage_is_that_of_the_first_chapter() -> None:
    step = next_step(CATALOGUE, Progress())
    assert step.command == "python -m bugs try 04"
    assert step.said == "The next exhibit is 04, Three labels, two outputs: a script that fails with an exception."


def test_what_was_begun_comes_first() -> None:
    step = next_step(CATALOGUE, Progress({"04": DONE, "12": Cage(begun="today", wrong="rules, metric")}))
    assert step.command == "python -m bugs check 12"
    assert "still wrong at the last check: rules, metric" in step.said


def test_at_the_end_there_is_a_surprise() -> None:
    step = next_step(CATALOGUE, Progress(dict.fromkeys(CATALOGUE, DONE)))
    assert (step.exhibit, step.command) == (None, "python -m bugs surprise")
