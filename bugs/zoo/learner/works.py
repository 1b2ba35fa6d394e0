"""What a learner can work on: an exhibit, the exercises of a chapter, a chapter's mystery, or a surprise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.learner import exercises
from bugs.zoo.learner.attempts import Attempt, copied

CHAPTERS, MYSTERIES = "book/chapters", "book/mysteries"
TORCHRUN = "torchrun --nproc-per-node "  # in the first lines of a script of several ranks
PAGE = re.compile(r"(chapter|mystery)[-_ ]?(\d+)", re.IGNORECASE)


class NoSuchPage(ValueError):
    """There is no chapter or mystery of this number; `str()` says which there are."""


@dataclass(frozen=True)
class Work:
    """One thing to work on.

    Attributes:
        kind: an exhibit, a chapter's exercises, or a chapter's mystery.
        word: what a learner calls it: "04", "chapter-05", "mystery-05", "surprise".
        title: of a chapter its title, of an exhibit what is seen of its bug; empty if that must not be told.
        attempt: the learner's version.
        source: the file that a copy is made of.
        exhibit: whose script it is; None for chapters and mysteries.
        is_surprise: whether the learner is not told which exhibit it is.
        ranks: the processes that run a mystery's script.
    """

    kind: Literal["exhibit", "chapter", "mystery"]
    word: str
    title: str
    attempt: Attempt
    source: Path
    exhibit: Exhibit | None = None
    is_surprise: bool = False
    ranks: int = 1

    @property
    def solution(self) -> Path:
        """The page whose assertions check a mystery."""
        return self.source.with_suffix(".md")

    def text(self) -> str:
        """Return what a new copy holds."""
        if self.exhibit is not None:
            return copied(self.exhibit, self.attempt.shown)
        if self.kind == "chapter":
            return exercises.dealt(self.source)
        return self.source.read_text("utf-8")


def page_work(root: Path, name: str) -> Work | None:
    """Return the chapter or mystery that a name means; None if it means neither.

    Raises:
        NoSuchPage: it means one that does not exist.
    """
    found = PAGE.match(name.strip().removeprefix("attempts/"))
    if found is None:
        return None
    kind, number = found[1].lower(), int(found[2])
    folder = root / (CHAPTERS if kind == "chapter" else MYSTERIES)
    pattern = "[0-9][0-9]_*.md" if kind == "chapter" else "mystery_[0-9][0-9].py"
    places = {int(re.findall(r"\d+", place.name)[0]): place for place in sorted(folder.glob(pattern))}
    if number not in places:
        known = ", ".join(f"{kind}-{each:02}" for each in places) or "none"
        raise NoSuchPage(f"there is no {kind}-{number:02}; there are: {known}")
    source, word = places[number], f"{kind}-{number:02}"
    if kind == "chapter":
        file, title = f"chapter_{number:02}.ipynb", _title(source)
        return Work("chapter", word, title, Attempt(root, word, file), source)
    ranks = ranks_in(source.read_text("utf-8"))
    return Work("mystery", word, "", Attempt(root, word, source.name), source, ranks=ranks)


def ranks_in(text: str) -> int:
    """Return how many processes run a mystery's script, as its first lines say."""
    digit = text.partition(TORCHRUN)[2][:1]
    return int(digit) if digit.isdigit() else 1


def pages(root: Path) -> list[str]:
    """Return the words of all chapters with exercises, then of all mysteries."""
    found = []
    for kind, folder, pattern in (
        ("chapter", CHAPTERS, "[0-9][0-9]_*.md"),
        ("mystery", MYSTERIES, "mystery_*.py"),
    ):
        for place in sorted((root / folder).glob(pattern)):
            found.append(f"{kind}-{int(re.findall(r'[0-9]+', place.name)[0]):02}")
    return found


def _title(source: Path) -> str:
    found = re.search(r"^# \d+ · (.+)$", source.read_text("utf-8"), re.MULTILINE)
    return found[1] if found else source.stem
