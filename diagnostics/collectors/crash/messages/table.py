"""Reads the table of messages: one row per wording of an error, in the TOML files of this folder.

A file holds families. A family is what one recogniser asks for, in order: the first row that matches counts. What
its rows share stands at its head, and a row may say otherwise.

    [graphs]
    rule = "graph-misuse"
    framework = "PyTorch"

    [[graphs.messages]]
    kind = "not a scalar"
    pattern = 'grad can be implicitly created only for scalar outputs'
    examples = ["grad can be implicitly created only for scalar outputs"]

A pattern is a regular expression that Python's `re` and JavaScript's `RegExp` with the flag ``u`` read alike. It
is written as JavaScript's, with ``(?<name>...)`` for a group, and without lookbehind, inline flags, back
references, ``$`` and a bare dot. Repetitions of wide classes are bounded, so that no text takes quadratic time.

Nothing is read on import: a file is read when one of its families is asked, and a pattern is compiled when a
message holds its words.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = (
    "gone",
    "distinct_causes",
    "stack",
    "build_faults",
    "pickled",
    "specific_keras",
    "surroundings",
    "releases",
    "renamed",
    "moved",
    "handed_on",
    "same_names",
    "inputs",
    "losses",
    "devices",
    "memory",
    "dtypes",
    "usage",
    "packages",
    "installation",
    "processes",
    "attention",
    "setup",
    "shapes",
    "autograd",
    "tensors",
    "types",
    "ranks",
    "setup_torch",
    "dataset_calls",
    "hugging_face",
    "data_files",
    "replicas",
    "shell",
    "ctc",
    "keras_calls",
    "loaders",
    "torch_calls",
    "keras_old",
    "library_calls",
    "codes",
    "signals_and_files",
    "torch_more",
    "tensorflow",
    "arrays",
    "projects",
    "vision",
    "tools",
    "transformers_more",
    "graphs",
    "constructors",
    "trainers",
    "shards",
    "keras_more",
    "keras_models",
    "kernels",
    "operations",
    "objects",
    "ecosystem",
    "detection",
    "graph_networks",
    "metrics",
    "generative",
    "environments",
    "training_runs",
    "traced",
    "configured",
    "files_of_weights",
    "builds",
    "compiled",
    "torch_data",
    "torch_ranks",
    "kinds",
    "logged",
    "cut",
)
"""In the order in which `classify` asks: of several rows that match one text, the first names the rule."""


@dataclass(frozen=True)
class Message:
    """One wording of an error.

    Attributes:
        family: the recogniser's name for rows that it treats alike.
        pattern: as JavaScript writes it, to be searched for in the exception's message.
        rule: the rule that it points to.
        framework: whose wording it is, with the library's usual name.
        examples: messages of our own in this wording, at least one.
        kind: what the recogniser makes of it, where the rows of a family differ.
        exception: class name that comes with it.
        since: first version with this wording, as far as known.
        until: last version with it; None if it is still in use, or not known.
        proves: what the message proves, in a few words.
        unknown: what the text cannot tell; empty if nothing is missing.
        needs: what else must be known for the rule to be named; empty if the message alone does.
        frames: files of a traceback that meets `needs`, for the tests.
        cause: of a row that explains itself: what is wrong, in a sentence or two. ``{name}`` stands for a group.
        fix: of such a row: what to change, the most likely first, with the same groups.
        within: pattern of the files of which one must be in the traceback, if it has frames; empty if any will do.
        at: pattern of the last frame's file, where code of the user's may stand below those of a library.
    """

    family: str
    pattern: str
    rule: str
    framework: str
    examples: tuple[str, ...]
    kind: str = ""
    exception: str = "RuntimeError"
    since: str | None = None
    until: str | None = None
    proves: str = ""
    unknown: str = ""
    needs: str = ""
    frames: tuple[str, ...] = ()
    cause: str = ""
    fix: tuple[str, ...] = ()
    within: str = ""
    at: str = ""

    @functools.cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern for Python. Its classes are ASCII's, as JavaScript's are."""
        return re.compile(re.sub(r"\(\?<(?=\w)", "(?P<", self.pattern), re.ASCII)

    @property
    def is_told_by_frames(self) -> bool:
        """Whether the message alone says something else: its row needs frames, and does not go without any."""
        return bool(self.needs) and not self.needs.endswith(("or none", "if there are any"))

    @functools.cached_property
    def literals(self) -> tuple[str, ...]:
        """By alternative, the longest run of plain characters that its matches hold; empty if there is none."""
        return tuple(max(runs, key=len, default="") for runs in _literals(self.pattern))

    def search(self, text: str) -> re.Match[str] | None:
        """Search a text; to compile all patterns would take longer than all else that `explain` does."""
        return self.compiled.search(text) if any(literal in text for literal in self.literals) else None


@dataclass(frozen=True)
class Found:
    """A row that matches a text, and what its groups hold."""

    message: Message
    match: re.Match[str]

    @property
    def kind(self) -> Any:
        """What the recogniser makes of it."""
        return self.message.kind

    @property
    def text(self) -> str:
        """The words that matched."""
        return self.match[0]

    def __getitem__(self, group: str | int) -> str:
        """Return what a group holds; of group 0, the words that matched.

        Raises:
            IndexError: the pattern has no such group.
        """
        return self.match[group]

    def get(self, group: str) -> str | None:
        """Return what a group holds; None if the pattern has none of this name, or it took no part."""
        return self.match.groupdict().get(group)


@dataclass(frozen=True)
class Family:
    """The rows of one family, which are read when they are first asked for."""

    name: str

    @property
    def messages(self) -> tuple[Message, ...]:
        """The rows, in order."""
        return _rows(_file_of(self.name))[self.name]

    def search(self, text: str) -> Found | None:
        """Return the first row that matches somewhere in `text`; None if none does."""
        for message in self.messages:
            if match := message.search(text):
                return Found(message, match)
        return None

    def each(self, text: str) -> Iterator[Found]:
        """Yield every match of the first row that matches: a message may list several things in one wording."""
        if (first := self.search(text)) is not None:
            yield from (Found(first.message, match) for match in first.message.compiled.finditer(text))


def all_messages() -> tuple[Message, ...]:
    """Return every row, in the order in which they are asked."""
    return tuple(message for file in FILES for rows in _rows(file).values() for message in rows)


@functools.cache
def _file_of(family: str) -> str:
    """Find the file of a family by its head; to read them all takes as long as all else that `explain` does.

    Raises:
        KeyError: no file has it.
    """
    for file in FILES:
        if f"[{family}]" in _text(file).splitlines():
            return file
    raise KeyError(family)


@functools.cache
def _text(file: str) -> str:
    return Path(__file__).with_name(f"{file}.toml").read_text("utf-8")


@functools.cache
def _rows(file: str) -> dict[str, tuple[Message, ...]]:
    families: dict[str, tuple[Message, ...]] = {}
    for family, shared in tomllib.loads(_text(file)).items():
        rows = shared.pop("messages")
        families[family] = tuple(_message(family, {**shared, **row}) for row in rows)
    return families


_PLAIN = r"(?:[^\\\[\](){}^$.*+?|]|\\[^A-Za-z0-9])(?![?*{])"
_PARTS = re.compile(rf"((?:{_PLAIN})+)|(\\.|\[(?:\\.|[^\]\\]){{0,200}}\]|\{{\d[\d,]*\}}|.)", re.DOTALL)
"""A run of plain characters, none of which is repeated or may be left out, or another part of a pattern."""
_ESCAPED = re.compile(r"\\(.)")


def _literals(pattern: str) -> Iterator[list[str]]:
    """Yield the runs of plain characters outside of groups, by the alternatives that stand outside of groups."""
    runs: list[str] = []
    depth = 0
    for run, part in _PARTS.findall(pattern):
        if part:
            depth += (part == "(") - (part == ")")
            if part == "|" and depth == 0:
                yield runs
                runs = []
        elif depth == 0:
            runs.append(_ESCAPED.sub(r"\1", run) if "\\" in run else run)
    yield runs


_MARKED = re.compile(r"`((?:[\w =,-]|\\[.()])+)`(?![?*{])")


def _without_marks_too(pattern: str) -> str:
    """Make the backticks around fixed words optional: a page that shows a message as Markdown loses them."""
    return _MARKED.sub(r"`?\1`?", pattern)


def _message(family: str, row: dict[str, Any]) -> Message:
    row = {**row, "pattern": _without_marks_too(row["pattern"])}
    lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
    return Message(family, **{**row, **lists})
