"""Finds out whether documents that are packed into one row of a language model see each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.dependence import PackingFacts

from .future import MIN_COMPARED, MIN_KINDS, by_position_or_none
from .subject import Inputs, OutOfTime, Subject, Unclear

MAX_ROWS = 4  # that are run
MAX_TOKENS = 4096  # that are run, unless one row has more
MIN_LENGTH = 4  # tokens of a document: fewer may be padding whose positions are counted too
MIN_COUNTED = 2  # targets in a document
IGNORED = -100  # where no other label is known to be left out


@dataclass(frozen=True)
class _Row:
    """Two neighbours in a row that holds several documents, as (start, stop)."""

    number: int
    first: tuple[int, int]
    second: tuple[int, int]
    last: tuple[int, int]
    count: int


@dataclass(frozen=True)
class _Pack:
    tokens: str  # the name of the input
    counted: Array  # whether each token is a target
    mark: Literal["positions", "segments", "labels"]
    marker: str
    rows: list[_Row]
    ends: Array  # tokens that documents begin or end with
    closed: bool


def compare_packed(subject: Subject) -> PackingFacts:
    """Exchange the words of the first document of a row, and compare the predictions in the second.

    The first and the last token of a document stay, since a model may read from them where it begins and ends.

    Raises:
        Unclear: no row is seen to hold several documents, or the targets are not their tokens.
        OutOfTime: the time is over.
    """
    pack = _pack(subject)
    tokens = subject.inputs[pack.tokens]
    length = tokens.shape[1]
    chosen = pack.rows[: max(1, min(MAX_ROWS, MAX_TOKENS // length))]
    given = _rows_of(subject.inputs, tokens.shape, [row.number for row in chosen])
    before = _log_probabilities(subject, given, len(chosen), length)
    if not np.array_equal(before, _log_probabilities(subject, given, len(chosen), length, seed=1)):
        raise Unclear("the predictions are random in evaluation mode")
    if not np.isfinite(before).all():
        raise Unclear("the predictions are not finite")
    exchanged = given[pack.tokens].copy()
    for place, row in enumerate(chosen):
        other = next((r for r in pack.rows if r.number != row.number), None)
        source = row.last if other is None else other.first
        start, stop = row.first
        exchanged[place, start + 1 : stop - 1] = _other_words(
            exchanged[place, start + 1 : stop - 1],
            tokens[(row if other is None else other).number, slice(*source)][1:-1],
            np.setdiff1d(tokens, pack.ends),
        )
    after = _log_probabilities(subject, {**given, pack.tokens: exchanged}, len(chosen), length)
    change, losses, alone = 0.0, [], []
    for place, row in enumerate(chosen):
        start, stop = row.second
        change = max(change, float(np.abs(after[place, start:stop] - before[place, start:stop]).max()))
        wanted = tokens[row.number, start:stop]
        counts = pack.counted[row.number, start:stop].copy()
        counts[0] = False  # predicted from the last token of the document before
        losses.append([_loss(values[place, start:stop], wanted, counts) for values in (before, after)])
        by_itself = _alone(subject, given, place, (start, stop), tokens=exchanged.shape)
        alone.append(None if by_itself is None else _loss(by_itself, wanted, counts))
    if math.isnan(change):
        raise Unclear("the predictions are not finite")
    packed, with_other = (float(mean) for mean in np.mean(losses, axis=0))
    return PackingFacts(
        input=pack.tokens,
        mark=pack.mark,
        marker=pack.marker,
        rows=len(chosen),
        documents=sum(row.count for row in chosen),
        closed=pack.closed,
        separated=not any(pack.counted[row.number, row.second[0]] for row in chosen),
        change=change,
        spread=float(np.sqrt(np.square(before.reshape(-1, before.shape[-1]).std(0, ddof=1)).mean())),
        loss=packed,
        loss_exchanged=with_other,
        loss_moves=float(np.mean([abs(new - old) for old, new in losses])),
        loss_alone=None if None in alone else float(np.mean([loss for loss in alone if loss is not None])),
    )


def _pack(subject: Subject) -> _Pack:
    """Find the tokens, and what divides their rows into documents: positions, segment ids, or ignored labels."""
    name, counted = _tokens(subject)
    tokens = subject.inputs[name]
    others = {
        given: np.broadcast_to(array, tokens.shape)
        for given, array in subject.inputs.items()
        if given != name and array.dtype.kind in "iu" and array.shape in (tokens.shape, (1, tokens.shape[1]))
    }
    for mark, marker, rows in _divisions(tokens, counted, others):
        documents = [
            [one for one in row if len(np.unique(tokens[number, slice(*one)])) >= MIN_KINDS]
            for number, row in enumerate(rows)
        ]
        packed = [
            _Row(number, row[0], row[1], row[-1], len(row))
            for number, row in enumerate(documents)
            if len(row) > 1
            and all(counted[number, one[0] + 1 : one[1]].sum() >= MIN_COUNTED for one in row[:-1])
            # the last one may have been cut off before its answer
            and counted[number, row[1][0] + 1 : row[1][1]].sum() >= MIN_COUNTED
        ]
        if not packed:
            continue
        whole = [stop - start for row in packed for start, stop in documents[row.number][:-1]]
        whole += [row[0][1] - row[0][0] for row in documents if len(row) == 1]
        if len({*whole, *(row.second[1] - row.second[0] for row in packed)}) < 2:
            continue  # the rows of a grid have one length
        begins = {int(tokens[row.number, start]) for row in packed for start, _ in documents[row.number]}
        ends = {int(tokens[row.number, stop - 1]) for row in packed for _, stop in documents[row.number][:-1]}
        closed = len(begins) == 1 or len(ends) == 1
        return _Pack(name, counted, mark, marker, packed, np.array([*begins | ends]), closed)
    raise Unclear("no row of the batch is known to hold several documents")


def _divisions(
    tokens: Array, counted: Array, others: Mapping[str, Array]
) -> Iterator[tuple[Literal["positions", "segments", "labels"], str, list[list[tuple[int, int]]]]]:
    """Yield how the rows may be divided: the kind of mark, its input, and the parts of each row."""
    for name, array in others.items():
        steps = np.diff(array, axis=1)
        rows = _runs(steps != 1)
        starts = {int(array[number, start]) for number, row in enumerate(rows) for start, _ in row}
        if len(starts) == 1:
            yield "positions", name, rows
        if ((steps == 0) | (steps == 1)).all() and (steps == 1).any():
            yield "segments", name, _runs(steps == 1)
    token = tokens[0, 0]
    if (tokens[:, 0] == token).all():
        rows = _runs(tokens[:, 1:] == token)
        prompts = [
            not counted[number, start : start + 2].any() for number, row in enumerate(rows) for start, _ in row
        ]
        if all(prompts) and len(prompts) > len(rows):
            yield "labels", "", rows


def _runs(new: Array) -> list[list[tuple[int, int]]]:
    """Divide each row where `new` (rows, length - 1) is true; return the parts that are long enough."""
    length = new.shape[1] + 1
    divided = []
    for row in new:
        edges = [0, *(np.flatnonzero(row) + 1).tolist(), length]
        parts = itertools.pairwise(edges)
        divided.append([(start, stop) for start, stop in parts if stop - start >= MIN_LENGTH])
    return divided


def _tokens(subject: Subject) -> tuple[str, Array]:
    """Return the input whose own tokens are the targets, and which of its tokens (rows, length) are."""
    target = subject.target
    if target is None or target.dtype.kind not in "iu":
        raise Unclear("the targets are not known to be tokens")
    ignored = IGNORED if subject.ignore_index is None else subject.ignore_index
    found = {
        name: counted
        for name, array in subject.inputs.items()
        if array.ndim == 2 and array.dtype.kind in "iu" and array.min(initial=0) >= 0
        if (counted := _counted(array, target, ignored)) is not None
    }
    if len(found) > 1:  # labels may be passed to the model as a copy of its tokens
        found = {name: counted for name, counted in found.items() if name in subject.tested}
    if len(found) != 1:
        raise Unclear("the targets are not the tokens of one of the inputs")
    return next(iter(found.items()))


def _counted(tokens: Array, target: Array, ignored: int) -> Array | None:
    """Return which tokens are targets, of the position before or, for transformers, of their own; None if not."""
    rows, length = tokens.shape
    layouts = []
    if target.size == tokens.size:
        labels = target.reshape(rows, length)
        layouts = [(labels[:, :-1], tokens[:, 1:], 1), (labels[:, 1:], tokens[:, 1:], 1)]
    elif target.size == rows * (length - 1):
        layouts = [(target.reshape(rows, length - 1), tokens[:, 1:], 1)]
    for labels, wanted, offset in layouts:
        known = labels != ignored
        if known.sum() < MIN_COMPARED or len(np.unique(wanted[known])) < MIN_KINDS:
            continue
        if (labels == wanted)[known].all():
            counted = np.zeros(tokens.shape, bool)
            counted[:, offset:] = known
            return counted
    return None


def _rows_of(inputs: Inputs, shape: tuple[int, ...], rows: list[int]) -> dict[str, Array]:
    """Take some rows of each input that has one for each row of tokens (rows, length)."""
    if shape[0] == shape[1]:
        raise Unclear("the batch has as many rows as positions")
    return {name: array[rows] if array.shape[:1] == shape[:1] else array for name, array in inputs.items()}


def _log_probabilities(subject: Subject, given: Inputs, rows: int, length: int, seed: int = 0) -> Array:
    """Return the log-probabilities (rows, length, tokens) that a model predicts."""
    found: Array | None = by_position_or_none(subject.ask(given, seed=seed).main, rows, length, 1)
    if found is None:
        raise Unclear("the model does not return a prediction for each position")
    shifted = found - found.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def _other_words(words: Array, source: Array, kinds: Array) -> Array:
    """Return other words, as many, of another document; where they would be equal, other tokens of the batch."""
    usable = source[np.isin(source, kinds)]
    made = np.resize(usable, words.shape) if usable.size else words.copy()
    same = (made == words) & np.isin(words, kinds)
    if kinds.size:
        made[same] = kinds[(np.searchsorted(kinds, words[same]) + 1) % len(kinds)]
    return np.asarray(made)


def _loss(values: Array, tokens: Array, counts: Array) -> float:
    """Return the cross entropy of the counted tokens of a document, each predicted at the position before."""
    places = np.flatnonzero(counts)
    if int(tokens.max()) >= values.shape[-1]:
        raise Unclear("the model has fewer outputs than there are tokens")
    return float(-values[places - 1, tokens[places]].mean())


def _alone(
    subject: Subject, given: Inputs, place: int, document: tuple[int, int], tokens: tuple[int, ...]
) -> Array | None:
    """Run one document as a row of its own; None if the model cannot be given one. `tokens`: their shape."""
    start, stop = document
    rows, length = tokens

    def cut(array: Array) -> Array:
        by_row = array.shape[:1] == (rows,)
        one = array[place : place + 1] if by_row else array
        for axis in [axis for axis in range(int(by_row), one.ndim) if one.shape[axis] == length]:
            one = one.take(range(start, stop), axis)
        return one

    try:
        alone = _log_probabilities(subject, {name: cut(array) for name, array in given.items()}, 1, stop - start)
    except OutOfTime:
        raise
    except Exception:  # of the model: it may take rows of one length only
        return None
    return np.asarray(alone[0])
