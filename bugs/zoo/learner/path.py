"""The order in which the exhibits are best opened, and where to go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.keeper.spelling import command
from bugs.zoo.learner.progress import Progress

# As the book's chapters have them; a test compares. An exhibit that is not listed comes last.
ORDER = (
    *("04", "01", "09", "19", "20", "02", "10", "05", "11", "12", "13", "15", "06", "16", "17", "18"),
    *("07", "36", "14", "08", "03", "31", "33", "34", "35", "21", "22", "24", "23", "28"),
)


@dataclass(frozen=True)
class Step:
    """Where to go on.

    Attributes:
        exhibit: the exhibit; None if all are fixed.
        begun: whether there is an attempt to go on with.
        said: in a sentence.
        command: what to type.
    """

    exhibit: Exhibit | None
    begun: bool
    said: str
    command: str


def in_order(exhibits: Mapping[str, Exhibit]) -> list[Exhibit]:
    """Return the exhibits in the order of the book."""
    return sorted(exhibits.values(), key=lambda e: (ORDER.index(e.id) if e.id in ORDER else len(ORDER), e.id))


def next_step(exhibits: Mapping[str, Exhibit], progress: Progress) -> Step:
    """Return an exhibit that was begun and not fixed, else the next of the path, else a surprise."""
    path = [exhibit for exhibit in in_order(exhibits) if not progress.of(exhibit.id).repaired]
    for exhibit in path:
        cage = progress.of(exhibit.id)
        if cage.begun:
            wrong = f"; still wrong at the last check: {cage.wrong}" if cage.wrong else ""
            said = f"Go on with exhibit {exhibit.id}, {exhibit.title}{wrong}."
            return Step(exhibit, True, said, command("check", exhibit.id))
    if path:
        exhibit = path[0]
        said = f"The next exhibit is {exhibit.id}, {exhibit.title}: {symptom_of(exhibit)}."
        return Step(exhibit, False, said, command("try", exhibit.id))
    said = "All exhibits are fixed. Go on with a surprise, an exhibit in disguise: which bug is it?"
    return Step(None, False, said, command("surprise"))


def symptom_of(exhibit: Exhibit) -> str:
    """Say what a reader sees, and nothing of the cause."""
    return {
        "throws": "a script that fails with an exception",
        "silent": "a script that runs to its end, and is wrong",
        "exhausts": "a script that runs out of memory",
    }[exhibit.symptom]
