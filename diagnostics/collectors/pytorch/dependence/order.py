"""Finds out whether a model with attention knows in which order the tokens of a row stand."""

from __future__ import annotations

import numpy as np

from diagnostics.collectors.pytorch.dependence.operations import attention_seen
from diagnostics.collectors.shared.dependence.future import by_position_or_none
from diagnostics.collectors.shared.dependence.padding import most_frequent
from diagnostics.collectors.shared.dependence.subject import Inputs, Unclear
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import OrderFacts

from .subject import Subject

MAX_ROWS = 8  # examples that are run
MIN_LENGTH = 6  # tokens of a row
REPEATED = 0.5  # of the rows hold a token twice: a sequence; a set of items or of columns holds none
PAIRS = 20  # of equal tokens in a row, at least, whose targets are compared
KINDS = 8  # different tokens, at least


def compare_order(subject: Subject) -> OrderFacts:
    """Put the tokens of each row into another order, and compare the answers.

    Raises:
        Unclear: no input is seen to hold tokens in an order, or no attention runs over them.
        OutOfTime: the time is over.
    """
    tokens = _tokens(subject.inputs)
    size, length = tokens.shape
    rows = next((n for n in range(min(MAX_ROWS, size), 1, -1) if n != length), 0)
    if rows < 2:
        raise Unclear("the batch contains only one text")
    inputs = {given: t[:rows] if t.shape[:1] == (size,) else t for given, t in subject.inputs.items()}
    with attention_seen(subject.model, length) as seen:
        first = subject.ask(inputs).main
    if not seen:
        raise Unclear("no attention between the tokens of a row was observed")
    if not np.array_equal(first, subject.ask(inputs, seed=1).main):
        raise Unclear("the predictions are random in evaluation mode")
    if any(_are_positions(t, length) for t in inputs.values()):
        raise Unclear("the model gets the positions as an input")
    order = np.random.default_rng(0).permutation(length)
    moved = {given: t.take(order, 1) if t.shape[:2] == (rows, length) else t for given, t in inputs.items()}
    if any(t.ndim and length in t.shape and t is inputs[given] for given, t in moved.items()):
        raise Unclear("another input has an axis of the same length")
    after = subject.ask(moved).main
    by_position = by_position_or_none(first, rows, length, 1)
    answers = first if by_position is None else by_position.take(order, 1)
    after = after if by_position is None else by_position_or_none(after, rows, length, 1)
    if after is None or after.shape != answers.shape or not np.isfinite(first).all():
        raise Unclear("the predictions are not finite, or their shape changes")
    whole = answers.reshape(-1, answers.shape[-1])
    conflicts, by_chance = (None, None) if by_position is None else _conflicts(tokens, subject)
    return OrderFacts(
        change=float(np.abs(after - answers).max()),
        spread=float(np.sqrt(np.square(whole.std(0, ddof=1)).mean())),
        length=int(length),
        by_position=by_position is not None,
        attention=seen[0],
        conflicts=conflicts,
        by_chance=by_chance,
    )


def _conflicts(tokens: Array, subject: Subject) -> tuple[float | None, float | None]:
    """Return the shares of pairs with different targets: of equal tokens in a row, and of any two positions."""
    target = subject.target
    if target is None or target.dtype.kind == "f" or target.size != tokens.size:
        return None, None
    targets = target.reshape(tokens.shape)
    known: Array = np.ones(tokens.shape, bool)
    if subject.ignore_index is not None:
        known = targets != subject.ignore_index
    pairs = np.triu(known[:, :, None] & known[:, None, :], 1)
    equal = pairs & (tokens[:, :, None] == tokens[:, None, :])
    differ = targets[:, :, None] != targets[:, None, :]
    if int(equal.sum()) < PAIRS:
        return None, None
    return float(differ[equal].mean()), float(differ[pairs].mean())


def _tokens(inputs: Inputs) -> Array:
    """Return the only input of tokens that stand in an order: ids (rows, positions), some twice in a row."""
    found = [
        tensor
        for tensor in inputs.values()
        if tensor.ndim == 2 and tensor.shape[1] >= MIN_LENGTH and tensor.dtype in (np.int32, np.int64)
    ]
    varied = [tensor for tensor in found if len(np.unique(tensor)) >= KINDS]
    if len(varied) != 1:
        raise Unclear("needs exactly one input that contains tokens")
    tensor = varied[0]
    padding = most_frequent(tensor[:, -1])
    repeats = [_repeats(row[row != padding]) for row in tensor]
    if sum(repeats) < REPEATED * len(repeats):
        raise Unclear("each row is a set: no token occurs in it twice")
    return tensor


def _repeats(row: Array) -> bool:
    """Whether a token stands in a row twice, and the row is not sorted, as counts and sets are."""
    return len(np.unique(row)) < len(row) and bool((np.diff(row) < 0).any())


def _are_positions(tensor: Array, length: int) -> bool:
    """Whether an input counts the places of a row: all differ, and they grow."""
    if tensor.dtype.kind == "f" or tensor.ndim not in (1, 2) or tensor.shape[-1] != length:
        return False
    return bool((np.diff(tensor.reshape(-1, length)) > 0).all())
