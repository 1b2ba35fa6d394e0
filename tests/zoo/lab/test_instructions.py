"""The tasks have the answers that a person would give, and the two splits share none."""

from __future__ import annotations

import itertools
import re

from bugs import lab
from bugs.lab.instructions import NUMBERS, SIZES, pages, tasks


def test_conversations_have_two_turns_in_the_form_of_chat_templates() -> None:
    splits = lab.instructions()
    assert {name: len(split) for name, split in splits.items()} == SIZES
    for turns in splits["validation"]["messages"][:50]:
        assert [turn["role"] for turn in turns] == ["user", "assistant"]


def test_no_task_is_in_both_splits_or_twice_in_one() -> None:
    asked = [turns[0]["content"] for split in lab.instructions().values() for turns in split["messages"]]
    assert len(set(asked)) == len(asked) == sum(SIZES.values())


def test_answers_are_right() -> None:
    for task, answer in itertools.islice(tasks(5), 300):
        listed = task.partition(":")[2].partition(". What")[0].strip().split(", ")
        if task.startswith("Sort"):
            assert answer == ", ".join(sorted(listed)) + "."
        elif task.startswith("How many"):
            assert answer == NUMBERS[len(listed) - 2] + "."
        else:
            colour = re.fullmatch(r".*What is (\w+)\?", task)[1]
            assert answer == next(thing for thing in listed if thing.startswith(colour)) + "."


def test_the_same_seed_draws_the_same_pages() -> None:
    first, second, other = (list(itertools.islice(pages(seed), 5)) for seed in (3, 3, 4))
    assert first == second != other
    assert all("User" not in page and "?" not in page for page in first)
