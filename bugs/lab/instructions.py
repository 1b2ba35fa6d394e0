"""Small tasks in plain English, and the notes that the language model has read before it is taught any of them.

The notes list, copy, sort and count; nobody asks anything in them. The tasks ask for the same things in turns, so
a model that has read the notes knows the words and the alphabet, but neither who speaks nor when to stop.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets import DatasetDict

VERSION = 1  # raise it when notes or tasks change: the language model is then built again
SIZES = {"train": 2_400, "validation": 240}
COLOURS = ("red", "blue", "green", "black", "white", "pink", "grey", "brown")
THINGS = (
    *("apples", "boats", "cups", "drums", "eggs", "figs", "hats", "jars"),
    *("kites", "lamps", "maps", "nets", "pears", "ropes", "shoes", "tents"),
)
NUMBERS = ("two", "three", "four")


def instructions() -> DatasetDict:
    """Return tasks and answers as conversations, in the form that chat templates take.

    Returns:
        Splits `train` and `validation`, without a task in common; column `messages`, a list of two turns, each
        with `role` ("user", "assistant") and `content`. One task in three looks something up in a table, one
        sorts, one counts.
    """
    from datasets import Dataset, DatasetDict

    drawn = _distinct(tasks(VERSION))
    splits = {}
    for split, size in SIZES.items():
        turns = [
            [{"role": "user", "content": task}, {"role": "assistant", "content": answer}]
            for task, answer in (next(drawn) for _ in range(size))
        ]
        made = Dataset.from_dict({"messages": turns}, split=split)
        splits[split] = Dataset(made.data, info=made.info, split=made.split, fingerprint=f"zoo-{VERSION}-{split}")
    return DatasetDict(splits)


def tasks(seed: int) -> Iterator[tuple[str, str]]:
    """Draw tasks and their answers, the three kinds in turn, for ever."""
    draw = random.Random(seed)
    while True:
        coloured = _coloured(draw)
        one = draw.choice(coloured)
        yield f"On the table: {', '.join(coloured)}. What is {one.split()[0]}?", f"{one}."
        things = _things(draw)
        yield f"Sort by the alphabet: {', '.join(things)}", f"{', '.join(sorted(things))}."
        things = _things(draw)
        yield f"How many things are these: {', '.join(things)}", f"{NUMBERS[len(things) - 2]}."


def pages(seed: int) -> Iterator[str]:
    """Draw pages of one to eight notes, for ever."""
    draw = random.Random(seed)
    while True:
        notes = (draw.choice((_table, _table, _shelf, _parcel))(draw) for _ in range(draw.randint(1, 8)))
        yield " ".join(notes)


def _table(draw: random.Random) -> str:
    coloured = _coloured(draw)
    again, sold = ", ".join(coloured), ", ".join(draw.sample(coloured, len(coloured)))
    return f"On the table: {again}. Again: {again}. Sold: {sold}."


def _shelf(draw: random.Random) -> str:
    things = _things(draw)
    return f"On the shelf: {', '.join(things)}. By the alphabet: {', '.join(sorted(things))}."


def _parcel(draw: random.Random) -> str:
    things = _things(draw)
    return f"In the parcel: {', '.join(things)}. Things in it: {NUMBERS[len(things) - 2]}."


def _coloured(draw: random.Random) -> list[str]:
    things = _things(draw)
    return [f"{colour} {thing}" for colour, thing in zip(draw.sample(COLOURS, len(things)), things, strict=True)]


def _things(draw: random.Random) -> list[str]:
    return draw.sample(THINGS, draw.randint(2, 4))


def _distinct(drawn: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    seen = set()
    for task in drawn:
        if task not in seen:
            seen.add(task)
            yield task
