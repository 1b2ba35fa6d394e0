"""The table of messages: one row per wording of an error, in the order in which they are compared with a text.

The rows are written as TOML, one file per rule, and read from `table.json`, which `tools.compile_table` makes of
them. A call reads one file, and compiles only the patterns whose words are in the text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnostics.facts.crash.shapes import Library

TABLE = Path(__file__).with_name("table.json")
FIRST, ORDINARY, SHARED, CUT = range(4)
"""Priorities: asked before all recognisers; an ordinary wording; one of several causes; without its numbers."""


_LIBRARIES: dict[str, Library] = {"Keras": "keras", "TensorFlow": "keras", "NumPy": "numpy"}


@dataclass(frozen=True)
class Message:
    """One wording of an error.

    Attributes:
        rule: the rule that it points to.
        pattern: as JavaScript writes it, to be searched for in the exception's message.
        literals: words of which every match holds at least one; one empty word if there are none.
        examples: messages of our own in this wording, at least one.
        priority: `FIRST`, `ORDINARY`, `SHARED` or `CUT`.
        recogniser: name under which a recogniser asks for the row, if one does.
        kind: what the recogniser makes of it, where its rows differ; of a row that explains itself: its evidence.
        framework: whose wording it is, with the library's usual name.
        exception: class name that comes with it.
        proves: what the message proves, in a few words; of a row that a recogniser reads, as the next.
        unknown: what the text cannot tell; empty if nothing is missing.
        needs: what else must be known for the rule to be named; empty if the message alone does.
        frames: files of a traceback that meets `needs`, for the tests.
        cause: of a row that explains itself: what is wrong, in a sentence or two. ``{name}`` stands for a group.
        fix: of such a row: what to change, the most likely first, with the same groups.
        within: pattern of the files of which one must be in the traceback, if it has frames; empty if any will do.
        at: pattern of the last frame's file, where the user's code may be below a library's.
        beside: pattern of words that must be elsewhere in the pasted text, such as a warning above the traceback.
            Its groups fill `cause` and `fix`, too.
    """

    rule: str
    pattern: str
    literals: tuple[str, ...]
    examples: tuple[str, ...]
    priority: int = ORDINARY
    recogniser: str = ""
    kind: str = ""
    framework: str = "PyTorch"
    exception: str = "RuntimeError"
    proves: str = ""
    unknown: str = ""
    needs: str = ""
    frames: tuple[str, ...] = ()
    cause: str = ""
    fix: tuple[str, ...] = ()
    within: str = ""
    at: str = ""
    beside: str = ""

    @functools.cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern for Python. Its classes are ASCII's, as JavaScript's are."""
        return re.compile(python_pattern(self.pattern), re.ASCII)

    def search_beside(self, log: str) -> re.Match[str] | None:
        """Search the text around the traceback for the words that must be there."""
        return re.search(python_pattern(self.beside), log, re.ASCII)

    @property
    def is_told_by_frames(self) -> bool:
        """Whether the message alone says something else: its row needs frames, and does not go without any."""
        return bool(self.needs) and not self.needs.endswith(("or none", "if there are any"))

    def search(self, text: str) -> re.Match[str] | None:
        """Search a text; to compile all patterns would take longer than all else that `explain` does."""
        return self.compiled.search(text) if any(literal in text for literal in self.literals) else None


@dataclass(frozen=True)
class Found:
    """A row that matches a text, and what its groups hold."""

    message: Message
    match: re.Match[str]
    beside: re.Match[str] | None = None

    @property
    def kind(self) -> Any:
        """What the recogniser makes of it."""
        return self.message.kind

    @property
    def library(self) -> Library:
        """For whose code a fix is worded."""
        return _LIBRARIES.get(self.message.framework, "torch")

    def __getitem__(self, group: str | int) -> str:
        """Return what a group holds; of group 0, the words that matched.

        Raises:
            IndexError: the pattern has no such group.
        """
        return self.match[group]

    def get(self, group: str) -> str | None:
        """Return what a group holds; None if the pattern has none of this name, or it took no part."""
        return self.match.groupdict().get(group)

    def number(self, group: str) -> int | None:
        """Return the number that a group holds; None if it took no part."""
        held = self.get(group)
        return int(held) if held else None

    def sizes(self, group: str) -> tuple[int, ...] | None:
        """Return the sizes of a shape that a group holds; None if it took no part."""
        held = self.get(group)
        return None if held is None else sizes(held)


def find(text: str, *names: str) -> Found | None:
    """Return the first row that matches in a text, of those that are for the recognisers of these names."""
    rows = (row for name in names for row in _by_recogniser()[name])
    return next((Found(row, match) for row in rows if (match := row.search(text)) is not None), None)


def find_each(text: str, name: str) -> Iterator[Found]:
    """Yield every match of the first row that matches: a message may list several things in one wording."""
    if (first := find(text, name)) is not None:
        yield from (Found(first.message, match) for match in first.message.compiled.finditer(text))


@functools.cache
def all_messages() -> tuple[Message, ...]:
    """Return every row, in the order in which they are asked."""
    return tuple(_message(row) for row in json.loads(TABLE.read_text("utf-8")))


def _message(row: dict[str, Any]) -> Message:
    fields: dict[str, Any] = {key: tuple(held) if isinstance(held, list) else held for key, held in row.items()}
    return Message(**fields)


@functools.cache
def _by_recogniser() -> dict[str, tuple[Message, ...]]:
    rows: dict[str, list[Message]] = {}
    for row in all_messages():
        rows.setdefault(row.recogniser, []).append(row)
    return {name: tuple(members) for name, members in rows.items()}


def sizes(written: str) -> tuple[int, ...]:
    """Read the sizes of a shape: ``3, 32, -1``."""
    return tuple(int(size) for size in re.findall(r"-?\d+", written))


def sizes_or_none(written: str) -> tuple[int | None, ...]:
    """Read the sizes of a shape, ``None, 32`` or Python 2's ``32L``; None for what is not a number."""
    parts = (part.strip().rstrip("L") for part in written.split(","))
    return tuple(int(part) if part.isdigit() else None for part in parts if part)


def python_pattern(pattern: str) -> str:
    """Write a pattern as Python does: ``(?P<name>`` in place of ``(?<name>``."""
    return re.sub(r"\(\?<(?=\w)", "(?P<", pattern)
