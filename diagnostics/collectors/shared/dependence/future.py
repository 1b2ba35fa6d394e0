"""Finds out whether a language model's answer at a position depends on the token that it is to predict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.dependence import FutureFacts

from .subject import Inputs, Subject, Unclear

MAX_ROWS = 8  # examples that are run
MIN_LENGTH = 4
MIN_COMPARED = 8  # targets that must equal the next token
MIN_KINDS = 3  # of tokens among these
COPIED = 0.5  # share of targets that may equal the token at their own position: more, and it repeats
AHEAD = 1e-4  # of the largest prediction, by which one must change: far more than rounding errors
PLACES = (0.25, 0.5, 0.75, 1.0)  # of the positions that count


def compare_future(subject: Subject) -> FutureFacts:
    """Replace one token, and compare the answer at the position before, which is to predict it.

    Raises:
        Unclear: the model is not known to predict the next token, or may read ahead on purpose.
        OutOfTime: the time is over.
    """
    name, axis, counted = _tokens(subject)
    tokens = subject.inputs[name]
    length, batch = tokens.shape[axis], tokens.shape[1 - axis]
    rows = next((r for r in range(min(MAX_ROWS, batch), 1, -1) if r != length), 0)
    if rows < 2:
        raise Unclear("the batch contains only one text")
    inputs = {
        given: array.take(range(rows), 1 - axis) if array.shape[:2] == tokens.shape else array
        for given, array in subject.inputs.items()
    }
    if any(
        array.ndim and array is subject.inputs[given] and len(array) == batch for given, array in inputs.items()
    ):
        raise Unclear("the model takes other inputs besides the text")
    if length in [n for array in inputs.values() for n in array.shape[2:]]:
        raise Unclear("another axis of the inputs is as long as the texts")
    with subject.summaries_seen(rows, length) as summaries:
        first = subject.ask(inputs)
    if summaries:
        raise Unclear(
            f"the model may be meant to read the whole text: {summaries[0]} receives or returns a summary of it"
        )
    before = _by_position(first.main, rows, length, axis)
    if not np.array_equal(first.main, subject.ask(inputs, seed=1).main):
        raise Unclear("the predictions are random in evaluation mode")
    if any(by_position_or_none(array, rows, length, axis) is not None for array in first.others):
        raise Unclear("the model returns several tensors with a prediction for each position")
    predicted = np.flatnonzero(counted.take(range(rows), 1 - axis).all(1 - axis)).tolist()
    if not predicted:
        raise Unclear("needs a position that contributes to the loss in every text")

    def change_at(position: int, replaced: range) -> float:
        answer = subject.ask(_with_others(inputs, name, axis, replaced)).main
        after = _by_position(answer, rows, length, axis)
        return float(np.abs(after.take(position, axis) - before.take(position, axis)).max())

    places = sorted({predicted[int(part * (len(predicted) - 1))] for part in PLACES})
    change, position = max((change_at(place, range(place + 1, place + 2)), place) for place in places)
    if math.isnan(change) or not np.isfinite(before).all():
        raise Unclear("the predictions are not finite")
    spread = float(np.sqrt(np.square(before.reshape(rows * length, -1).std(0, ddof=1)).mean()))
    past = change_at(position, range(position)) if position else None
    return FutureFacts(change, spread, position, length, name, past)


def reads_ahead(subject: Subject) -> bool | None:
    """Replace the second half of each text, and compare the answers in the first half.

    Returns:
        Whether an answer of a model with one for each token depends on later tokens; None if it is no such model.

    Raises:
        OutOfTime: the time is over.
    """
    target = subject.target
    found = [
        name
        for name, array in subject.inputs.items()
        if target is not None and array.size == target.size and array.ndim == 2 and array.dtype.kind in "iu"
        if len(np.unique(array)) >= MIN_KINDS and not np.array_equal(array, target.reshape(array.shape))
    ]
    if len(found) != 1 or subject.inputs[found[0]].shape[1] < MIN_LENGTH:
        return None
    rows, length = subject.inputs[found[0]].shape
    before = by_position_or_none(subject.ask(subject.inputs).main, rows, length, 1)
    again = by_position_or_none(subject.ask(subject.inputs, seed=1).main, rows, length, 1)
    half = length // 2
    changed = _with_others(subject.inputs, found[0], 1, range(half, length))
    after = by_position_or_none(subject.ask(changed).main, rows, length, 1)
    if before is None or after is None or not np.array_equal(before, again):
        return None
    change = np.abs(after[:, :half] - before[:, :half]).max()
    return bool(change > AHEAD * np.abs(before).max())


def by_position_or_none(main: Any, rows: int, length: int, axis: int) -> Any:
    """Return answers in the layout of the tokens, (rows, length, …) or (length, rows, …); None if they have none.

    Args:
        main: the answers, an array or a tensor.
        rows: of tokens.
        length: positions of a row.
        axis: that counts the positions.
    """
    layout = (rows, length) if axis == 1 else (length, rows)
    if main.ndim == 3 and main.shape[:2] == layout:
        return main
    if main.ndim == 3 and main.shape[::2] == layout:  # (rows, classes, length)
        return main.swapaxes(1, 2)
    if main.ndim == 2 and main.shape[0] == rows * length:
        return main.reshape(*layout, -1)
    return None


def _by_position(main: Array, rows: int, length: int, axis: int) -> Array:
    found: Array | None = by_position_or_none(main, rows, length, axis)
    if found is None:
        raise Unclear("the model does not return a prediction for each position")
    return found


def _tokens(subject: Subject) -> tuple[str, int, Array]:
    """Return the only input whose next tokens are the targets, its axis of positions, and which ones count."""
    target = subject.target
    if not subject.predicts_tokens or target is None:
        raise Unclear("the loss is not known to be a cross-entropy loss over next tokens")
    found = [
        (name, axis, counted)
        for name, array in subject.inputs.items()
        for axis in (1 - number for number in subject.axes)
        if array.ndim == 2 and array.dtype != bool
        if (counted := _counted(array, target, axis, subject.ignore_index)) is not None
    ]
    if len(found) > 1:  # labels may be passed to the model as a copy of its tokens
        found = [one for one in found if one[0] in subject.tested]
    if len(found) != 1:
        raise Unclear("the targets are not the next tokens of one of the inputs")
    return found[0]


def _counted(tokens: Array, target: Array, axis: int, ignore_index: int | None) -> Array | None:
    """Return which next tokens the loss counts, one fewer than there are tokens; None if they are no targets."""
    length = tokens.shape[axis]
    if length < MIN_LENGTH:
        return None
    following, here = tokens.take(range(1, length), axis), tokens.take(range(length - 1), axis)
    if target.size == tokens.size:
        wanted = target.reshape(tokens.shape).take(range(length - 1), axis)
    elif target.size == following.size:
        wanted = target.reshape(following.shape)
    else:
        return None
    counted: Array = np.ones(wanted.shape, bool) if ignore_index is None else wanted != ignore_index
    if counted.sum() < MIN_COMPARED or len(np.unique(wanted[counted])) < MIN_KINDS:
        return None
    if not (wanted == following)[counted].all() or (wanted == here)[counted].mean() >= COPIED:
        return None
    return counted


def _with_others(inputs: Inputs, name: str, axis: int, positions: range) -> dict[str, Array]:
    """Replace the tokens at some positions by others of the same batch."""
    tokens = inputs[name].copy()
    kinds, places = np.unique(tokens), (slice(None),) * axis + (slice(positions.start, positions.stop),)
    tokens[places] = kinds[(np.searchsorted(kinds, tokens[places]) + 1) % len(kinds)]
    return {**inputs, name: tokens}
