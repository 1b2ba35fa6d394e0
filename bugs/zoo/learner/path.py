"""The order in which exhibits, chapters and mysteries are best opened, and where to go on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.keeper.spelling import command
from bugs.zoo.learner.progress import Progress

# As the book's chapters have them; a test compares. An exhibit that is not listed comes last.
ORDER = (
    *("04", "01", "09", "19", "20", "30", "32", "02", "29", "10", "05", "11", "12", "13", "15", "06", "16"),
    *("17", "18", "39", "38", "07", "36", "14", "08", "03", "31", "33", "34", "35", "21", "22", "24", "23"),
    *("27", "28", "25", "26", "37"),
)


SHORT = re.compile(r"short path:?[^*]*?(?=\n- |\n\n|\Z)")  # the sentence of book/index.md that lists its pages


@dataclass(frozen=True)
class Course:
    """The pages that a learner can work on, in two orders.

    Attributes:
        titles: of the book's chapters, as readers see them, by word ("chapter-05"); in the order of the book.
        mysteries: the word of a chapter's mystery, by the chapter's.
        short: the words of the short path: chapters, then an exhibit.
    """

    titles: Mapping[str, str]
    mysteries: Mapping[str, str]
    short: Sequence[str] = ()

    def after(self, word: str, progress: Progress) -> tuple[str, str]:
        """Return what comes after a chapter or its mystery in the book, and on the short path; "" for none.

        What is solved already is passed over.
        """
        chapter = next((chapter for chapter, mystery in self.mysteries.items() if mystery == word), word)
        pages = [page for each in self.titles for page in (each, self.mysteries.get(each)) if page]
        return _behind(word, pages, progress), _behind(chapter, self.short, progress)


def read_course(root: Path) -> Course:
    """Read the orders from the book's chapters and its first page.

    Raises:
        OSError: a file cannot be read.
        ValueError: a chapter says something that cannot be used.
    """
    from book.builder.outline import load  # takes PyYAML along, which most commands do without

    chapters = load(root / "book" / "chapters")
    words = {chapter: f"chapter-{chapter.number:02}" for chapter in chapters}
    sentence = SHORT.search((root / "book" / "index.md").read_text("utf-8"))
    links = re.findall(r"\((chapters|exhibits)/(\d\d)_", sentence[0] if sentence else "")
    return Course(
        {word: chapter.shown for chapter, word in words.items()},
        {word: chapter.mystery.replace("_", "-") for chapter, word in words.items() if chapter.mystery},
        [number if kind == "exhibits" else f"chapter-{number}" for kind, number in links],
    )


def _behind(word: str, path: Sequence[str], progress: Progress) -> str:
    rest = path[path.index(word) + 1 :] if word in path else ()
    return next((each for each in rest if not progress.of(each).repaired), "")


@dataclass(frozen=True)
class Step:
    """Where to go on.

    Attributes:
        exhibit: the exhibit; None if all are fixed.
        begun: whether there is an attempt to go on with.
        said: in a sentence.
        command: what to type.
        short: what to type on the short path; empty if that is not known, or the same.
    """

    exhibit: Exhibit | None
    begun: bool
    said: str
    command: str
    short: str = ""


def in_order(exhibits: Mapping[str, Exhibit]) -> list[Exhibit]:
    """Return the exhibits in the order of the book."""
    return sorted(exhibits.values(), key=lambda e: (ORDER.index(e.id) if e.id in ORDER else len(ORDER), e.id))


def next_step(
    exhibits: Mapping[str, Exhibit], progress: Progress, course: Course | None = None, passed: str = ""
) -> Step:
    """Say where to go on.

    Args:
        exhibits: all of them.
        progress: what was done so far.
        course: the chapters; None if they are not known.
        passed: the chapter or mystery that was passed just now: what follows it comes first.

    Returns:
        What was begun and not fixed; else what follows a chapter or mystery, if one was passed last; else the
        next exhibit of the path; else a surprise.
    """
    path = [exhibit for exhibit in in_order(exhibits) if not progress.of(exhibit.id).repaired]
    pages = () if course is None else (*course.titles, *course.mysteries.values())
    if not passed:
        names = {exhibit.id: f"exhibit {exhibit.id}" for exhibit in path} | {p: p for p in pages}
        begun = [word for word in names if progress.of(word).begun and not progress.of(word).repaired]
        if begun:
            word = max(begun, key=lambda each: progress.of(each).begun)
            cage = progress.of(word)
            wrong = f"; still wrong at the last check: {cage.wrong}" if cage.wrong else ""
            return Step(exhibits.get(word), True, f"Go on with {names[word]}{wrong}.", command("check", word))
        passed = max(progress.cages, key=lambda each: progress.of(each).repaired, default="")
    if course is not None and passed in pages and (step := _page_step(course, *course.after(passed, progress))):
        return step
    if path:
        exhibit = path[0]
        said = f"The next exhibit is {exhibit.id}, {symptom_of(exhibit)}: {exhibit.headline}."
        return Step(exhibit, False, said, command("try", exhibit.id))
    said = "All exhibits are fixed. Go on with a surprise, an exhibit in disguise: which bug is it?"
    return Step(None, False, said, command("surprise"))


def _page_step(course: Course, word: str, short: str) -> Step | None:
    if not word:
        return None
    said = "Next is the mystery of this chapter: a script with one bug, which the page does not name."
    if word in course.titles:
        said = f"The next chapter is {course.titles[word]}."
    return Step(None, False, said, command("try", word), command("try", short) if short not in ("", word) else "")


def symptom_of(exhibit: Exhibit) -> str:
    """Say what a reader sees, and nothing of the cause."""
    return {
        "throws": "a script that fails with an exception",
        "silent": "a script that runs to its end, and is wrong",
        "exhausts": "a script that runs out of memory",
    }[exhibit.symptom]
