"""Compares the ends of the prompts that `generate` gets with the tokens before the answers in training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import PromptEnds

ANSWERS, PROMPTS = 8, 4  # fewer answers may follow the same token by chance; fewer prompts may be a try
KNOWN, ALL_KNOWN = 0.5, 0.9  # of the tokens of the prompts; the second if nothing is left of what precedes answers
CONTENT = 2  # tokens before a separator, by which a prompt without it is recognised
ADDED = 2  # tokens behind a separator, at most; more are an answer that the script begins
MISSING = 0.5  # of the prompts whose last words are too new to be recognised, at most


@dataclass(frozen=True)
class CutPrompts:
    """Prompts that end too early.

    Attributes:
        before: the tokens that all answers follow in training.
        missing: how many of them, at the end, no prompt has.
        recognised: how many prompts end where these tokens follow in training.
    """

    before: tuple[int, ...]
    missing: int
    recognised: int


@dataclass(frozen=True)
class AddedTokens:
    """Tokens that all prompts have in addition to those of training.

    Attributes:
        before: the tokens that all answers follow in training.
        behind: behind these, in each prompt; empty if there are none.
        start: the token with which each prompt begins twice; None if none does.
    """

    before: tuple[int, ...]
    behind: tuple[int, ...]
    start: int | None


def added_tokens(ends: PromptEnds) -> AddedTokens | None:
    """Return what the prompts have in addition; None if they have nothing, or it may begin an answer.

    Raises:
        NotApplicable: there are too few answers or prompts, or the answers follow different tokens.
    """
    trained, prompts, before = _separated(ends)
    starts = {row[0] for row in trained}
    start = starts.pop() if len(starts) == 1 else None
    if any(row[1:2] == (start,) for row in trained) or any(row[:2] != (start, start) for row in prompts):
        start = None
    behind: tuple[int, ...] = ()
    places = [_places(before, prompt) for prompt in prompts]
    if all(places):
        tails = {prompt[found[-1] + len(before) :] for prompt, found in zip(prompts, places, strict=True)}
        (behind,) = tails if len(tails) == 1 else ((),)
    if len(behind) > ADDED or np.isin(behind[:1], ends.answers).any():
        behind = ()
    if len(set(prompts)) < PROMPTS or (start is None and not behind):
        return None
    return AddedTokens(before, behind, start)


def cut_prompts(ends: PromptEnds) -> CutPrompts | None:
    """Return what the prompts lack; None if some have it, or write it themselves.

    Raises:
        NotApplicable: there are too few answers or prompts, or the answers follow different tokens.
    """
    trained, prompts, before = _separated(ends)
    found = [_missing(prompt, before, trained) for prompt in prompts]
    counts = set(found) - {None}
    if len(counts) != 1 or 0 in counts or found.count(None) > MISSING * len(found):
        return None
    (missing,) = (count for count in counts if count)
    tokens, known = [token for row in prompts for token in row], {token for row in trained for token in row}
    if sum(token in known for token in tokens) < (KNOWN if missing < len(before) else ALL_KNOWN) * len(tokens):
        return None
    absent = np.array(before[len(before) - missing :])
    written = (ends.continued[:, :missing] == absent).all(axis=1) if ends.continued.shape[1] >= missing else False
    if np.mean(written) > MISSING:
        return None
    return CutPrompts(before, missing, len(found) - found.count(None))


def _separated(ends: PromptEnds) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], tuple[int, ...]]:
    """Return the tokens before each trained answer, the prompts, and the tokens that all answers follow."""
    trained, prompts = [_real(row) for row in ends.trained], [_real(row) for row in ends.generated]
    if len(trained) < ANSWERS or len(prompts) < PROMPTS:
        raise NotApplicable(f"needs at least {ANSWERS} trained answers and {PROMPTS} prompts passed to generate()")
    before = _common_end(trained)
    if not before or len({row[: len(row) - len(before)] for row in trained}) < 2:
        raise NotApplicable("needs prompts that differ, with the same tokens before each trained answer")
    return trained, prompts, before


def _missing(prompt: tuple[int, ...], before: tuple[int, ...], trained: list[tuple[int, ...]]) -> int | None:
    """Return how many of the tokens before an answer a prompt lacks at its end; None if that is not known.

    None of them if they are within the prompt: it may go on with the beginning of an answer.
    """
    if _places(before, prompt):
        return 0
    for count in range(1, len(before)):
        if _ends_with(prompt, before[:-count]):
            return count
    last = prompt[-CONTENT:]
    followers = [row[place + CONTENT :][: len(before)] for row in trained for place in _places(last, row)]
    return len(before) if len(last) == CONTENT and before in followers else None


def _ends_with(prompt: tuple[int, ...], part: tuple[int, ...]) -> bool:
    return prompt[len(prompt) - len(part) :] == part if len(prompt) >= len(part) else False


def _places(part: tuple[int, ...], row: tuple[int, ...]) -> list[int]:
    return [start for start in range(len(row) - len(part) + 1) if row[start : start + len(part)] == part]


def _common_end(rows: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the longest end that all rows share, and that is not a whole row."""
    length = 0
    while length + 1 < min(map(len, rows)) and len({row[-length - 1] for row in rows}) == 1:
        length += 1
    return rows[0][len(rows[0]) - length :]


def _real(row: Array) -> tuple[int, ...]:
    return tuple(row[row >= 0].tolist())
