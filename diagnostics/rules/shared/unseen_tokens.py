"""Counts held-out tokens that never occur in the training rows, and compares the share with random splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.array import Array
from diagnostics.facts.data import NO_TOKEN, TokenSides

MIN_TRAINING, MIN_HELD_OUT, MIN_TOKENS = 64, 32, 100  # rows, rows, tokens held out
SPLITS = 20  # random ones
PADDED = 0.05  # of the rows, at least, if any are padded


@dataclass(frozen=True)
class UnseenTokens:
    """Held-out tokens that never occur in the training rows.

    Attributes:
        input: the name of the token input.
        share: the fraction of held-out tokens that never occur in training.
        by_chance: the largest such share in random splits of the same rows.
        ids: the unseen tokens, the most frequent first.
        count: the number of times that the unseen tokens occur in the held-out rows.
        tokens: the number of tokens in the held-out rows.
    """

    input: str
    share: float
    by_chance: float
    ids: list[int]
    count: int
    tokens: int


def unseen_tokens(sides: TokenSides) -> UnseenTokens:
    """Return what is found in the input with the largest share.

    Raises:
        NotApplicable: there are too few rows or tokens.
    """
    found = [
        one
        for name, (training, held) in sides.inputs.items()
        if (one := _of_input(name, training, held)) is not None
    ]
    if not found:
        raise NotApplicable(
            f"needs the tokens of at least {MIN_TRAINING} training rows and {MIN_HELD_OUT} evaluation rows, and "
            f"at least {MIN_TOKENS} tokens to compare"
        )
    return max(found, key=lambda one: one.share)


def _of_input(name: str, training: Array, held: Array) -> UnseenTokens | None:
    if len(training) < MIN_TRAINING or len(held) < MIN_HELD_OUT:
        return None
    padding = _padding(training, held)
    # In each row: its tokens without padding. The numbers of tokens of the rows let them be split again.
    rows = [row[(row != NO_TOKEN) & (row != padding)] for side in (training, held) for row in side]
    kinds, flat = np.unique(np.concatenate(rows), return_inverse=True)
    owner = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    is_held = np.arange(len(rows)) >= len(training)
    unseen, tokens = _unseen(flat, is_held[owner], len(kinds))
    if tokens.sum() < MIN_TOKENS:
        return None
    generator = np.random.default_rng(0)
    shares = []
    for _ in range(SPLITS):
        missed, there = _unseen(flat, generator.permutation(is_held)[owner], len(kinds))
        shares.append(missed.sum() / max(1, there.sum()))
    order = np.argsort(-unseen, kind="stable")
    return UnseenTokens(
        name,
        share=float(unseen.sum() / tokens.sum()),
        by_chance=float(max(shares)),
        ids=kinds[order[: np.count_nonzero(unseen)]].tolist(),
        count=int(unseen.sum()),
        tokens=int(tokens.sum()),
    )


def _unseen(flat: Array, is_held: Array, kinds: int) -> tuple[Array, Array]:
    """Return how often each kind of token is held out: those never trained on, and all."""
    there = np.bincount(flat[is_held], minlength=kinds)
    trained = np.bincount(flat[~is_held], minlength=kinds)
    return np.where(trained == 0, there, 0), there


def _padding(training: Array, held: Array) -> int:
    """Return the token that many rows begin or end with twice, as with padding; `NO_TOKEN` if there is none."""
    if training.shape[1] < 2 or held.shape[1] < 2:
        return NO_TOKEN
    ends = np.concatenate([side[:, pair] for side in (training, held) for pair in ([0, 1], [-1, -2])])
    twice = ends[(ends[:, 0] == ends[:, 1]) & (ends[:, 0] != NO_TOKEN), 0]
    kinds, counts = np.unique(twice, return_counts=True)
    if not len(kinds) or counts.max() < PADDED * (len(training) + len(held)):
        return NO_TOKEN
    return int(kinds[counts.argmax()])
