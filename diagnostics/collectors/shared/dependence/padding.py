"""Compares the predictions for padded rows with and without their padding, and the effect of the words on both."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.dependence import PaddingFacts, RemovedPadding

from .examples import CERTAIN, REL_TOLERANCE
from .subject import Inputs, OutOfTime, Unclear

MAX_ROWS = 6  # with the most padding, whose words are replaced
MAX_COMPARED = 16  # padded rows whose predictions are compared with those without padding
MIN_PADDED = 4  # rows of the batch with padding
MIN_WORDS = 2  # of a row
SHORT, LONG = 2, 4  # positions of padding: of a row that counts as padded, and of the row with the most
OTHERS = 3  # other texts that replace the words of a row
# A change of a value counts above this share of the predictions' standard deviation over the rows: half of it
# moves a typical row past a fifth of the others.
LARGE = 0.5

Call = Callable[[Inputs], Array]


@dataclass(frozen=True)
class Padded:
    """An input that is padded.

    Attributes:
        name: of the input.
        words: (rows, length), False where there is padding, which is at one end of each row.
        blank: the token that all padding consists of; None for vectors of zeros.
    """

    name: str
    words: Array
    blank: int | None = None

    @property
    def width(self) -> int:
        """Number of positions in a row."""
        return int(self.words.shape[1])

    @property
    def lengths(self) -> Array:
        """Number of words in each row."""
        return np.asarray(self.words.sum(1))


@dataclass(frozen=True)
class _Row:
    """One row of each input, and the positions of its words."""

    given: Inputs
    kept: Array


def padded_input(inputs: Inputs) -> Padded:
    """Return the only input whose rows end in the same token, or in zeros, for different lengths.

    Raises:
        Unclear: the number of such inputs is not one.
    """
    found = [one for name, array in inputs.items() if (one := _ending_in_padding(name, array)) is not None]
    if len(found) != 1:
        raise Unclear("needs exactly one input with padding")
    return found[0]


def masked_input(inputs: Inputs, mask: Array) -> Padded | None:
    """Return the input of tokens that a mask belongs to; None if the mask does not mark the padding of one.

    Args:
        inputs: of the model.
        mask: an array of the batch that may be a mask: one at words, zero at padding.
    """
    words = _words_of(mask)
    if words is None:
        return None
    for name, array in inputs.items():
        if array.shape == mask.shape and array.dtype.kind in "iu" and len(set(array[~words].tolist())) == 1:
            return Padded(name, words, int(array[~words][0]))
    return None


def input_with_mask(inputs: Inputs) -> Padded | None:
    """Return the input whose padding is marked by another input, with 0 or with 1; None if there is none."""
    for name, mask in inputs.items():
        if mask.ndim != 2 or not np.isin(mask, (0, 1)).all():
            continue
        others = {other: array for other, array in inputs.items() if other != name}
        for marked in (mask, mask == 0):
            if (padded := masked_input(others, marked)) is not None:
                return padded
            words = _words_of(marked)
            for other, array in others.items():
                blank = words is not None and array.ndim == 3 and array.shape[:2] == words.shape
                if words is not None and blank and array.dtype.kind == "f" and not array[~words].any():
                    return Padded(other, words)
    return None


def _words_of(mask: Array) -> Array | None:
    """Return where a mask is 1, if that is one run of each row, from its first position or up to its last."""
    if mask.ndim != 2 or not np.isin(mask, (0, 1)).all():
        return None
    words = mask.astype(bool)
    lengths = words.sum(1)
    if not lengths.all() or not _is_padded(mask.shape[1] - lengths):
        return None
    ordered = np.arange(mask.shape[1]) < lengths[:, None]
    fits = np.array_equal(words, ordered) or np.array_equal(words, ordered[:, ::-1])
    return words if fits else None


def separates(array: Array, words: Array) -> bool:
    """Whether an input tells words from padding, as a mask of any kind does, or a mask of pairs of positions."""
    if array.size != words.size:
        return array.ndim > 2 and array.shape[0] == len(words) and array.shape[-1] == words.shape[1]
    flat, inside = array.ravel(), words.ravel()
    at_words, at_padding = set(flat[inside].tolist()), set(flat[~inside].tolist())
    return len(at_words) == len(at_padding) == 1 and at_words != at_padding


def compare_padding(call: Call, inputs: Inputs, padded: Padded, target: Array | None = None) -> PaddingFacts:
    """Compare the predictions for padded rows with those for the same rows without padding.

    A row without padding is cut to its words. If the model needs one length, the padding is moved to the other
    end instead. Words are replaced in both, to see how much of the effect of a real change is left.

    Args:
        call: returns the predictions, float32, one for each row; in evaluation mode, with equal random numbers.
        inputs: of one batch, each with the rows along its first axis, or without axes.
        padded: the input with padding.
        target: of the loss; None if not known.

    Raises:
        Unclear: the predictions are not one for each row, or not finite, or too few rows are padded.
        OutOfTime: the time is over.
    """
    lengths, width = padded.lengths, padded.width
    if any(array.ndim and len(array) != len(lengths) for array in inputs.values()):
        raise Unclear("the first axis of an input is not the batch axis")
    shortest = np.argsort(lengths, kind="stable")
    usable = [int(row) for row in shortest if MIN_WORDS <= lengths[row] <= width - SHORT]
    if not usable:
        raise Unclear("no row of the batch has enough padding")
    replaced = usable[:MAX_ROWS]
    compared = usable[:: math.ceil(len(usable) / MAX_COMPARED)]
    rows = [_row_of(inputs, padded, row) for row in [*replaced, *compared]]
    rows += [_with_words(inputs, padded, row, number) for row in replaced for number in range(OTHERS)]
    whole = _asked(call, rows, width)
    if not np.isfinite(whole).all():
        raise Unclear("the predictions are not finite")
    count, end = len(replaced), len(replaced) + len(compared)
    noise = _apart(_asked(call, rows[:count], width), whole[:count])
    without, _ = _without_padding(call, [*rows[:count], *rows[end:]], padded)
    finite = np.isfinite(without[:count]).all(1)
    effects = [
        _effects(answers[:count], others)[finite]
        for answers, others in ((whole, whole[end:]), (without, without[count:]))
    ]
    longest = int(width - lengths.min())
    much = np.array([width - len(row.kept) >= longest / 2 for row in rows[:end]])
    removed = None
    with contextlib.suppress(OutOfTime):  # of what counts the predictions that change; the effects are known
        other, moved = _without_padding(call, rows[count:end], padded)
        if np.isfinite(other).all():
            removed = _removed(whole[count:end], other, noise, moved, target)
    return PaddingFacts(
        input=padded.name,
        rows=count,
        longest=longest,
        with_padding=_median(effects[0]),
        without=_median(effects[1]),
        fails=int((~finite).sum()),
        # Of more rows than are replaced: a few may be of one class by chance.
        spread=float(whole[:end][much].std(0).max()),
        blank=padded.blank,
        some_full=bool((lengths == width).any()),
        removed=removed,
    )


def _removed(
    with_padding: Array, without: Array, noise: float, moved: bool, target: Array | None
) -> RemovedPadding:
    """Count the predictions (rows, numbers) that differ."""
    changes = np.abs(without - with_padding).max(1)
    spread = float(with_padding.std(0).max())
    classes = _classes(with_padding, target)
    differ = changes > LARGE * spread if classes is None else classes(with_padding) != classes(without)
    # Sums of more or fewer terms differ in the last digits of float32, which is not an effect of the padding.
    differ &= changes > max(CERTAIN * noise, REL_TOLERANCE * float(np.abs(with_padding).max()))
    return RemovedPadding(
        rows=len(changes),
        changed=int(differ.sum()),
        by_class=classes is not None,
        change=_median(changes),
        spread=spread,
        noise=noise,
        moved=moved,
    )


def _classes(predictions: Array, target: Array | None) -> Callable[[Array], Array] | None:
    """Return what turns predictions (rows, numbers) into classes; None if the target names none."""
    if target is None or not target.size:
        return None
    if predictions.shape[1] == 1:
        if not np.isin(target, (0, 1)).all():
            return None
        between = 0.5 if predictions.min() >= 0 and predictions.max() <= 1 else 0.0
        return lambda values: values[:, 0] > between
    one_hot = target.ndim == 2 and target.shape[1] == predictions.shape[1] and (target.sum(1) == 1).all()
    if one_hot or (target.dtype.kind in "iu" and target.size == len(target)):
        return lambda values: values.argmax(1)
    return None


def _without_padding(call: Call, rows: Sequence[_Row], padded: Padded) -> tuple[Array, bool]:
    """Return the predictions for rows without padding, and whether it had to be moved to the other end.

    Raises:
        Unclear: the shape of a prediction depends on the length.
        OutOfTime: the time is over.
    """
    width = padded.width
    try:
        return _cut(call, rows, width), False
    except (OutOfTime, Unclear):
        raise
    except Exception:  # the model's own: it may have a weight for each position
        changed = [_filled(row, padded.name) for row in rows], [_turned(row, width) for row in rows]
        # In one call: a recurrent layer takes as long for twice the rows.
        filled, turned = np.split(_asked(call, [*changed[0], *changed[1]], width), 2)
        return (turned, True) if np.isfinite(filled).all() else (filled, False)


def _cut(call: Call, rows: Sequence[_Row], width: int) -> Array:
    """Return the predictions for rows that are cut to their words; rows of one length are run together."""
    answers: dict[int, Array] = {}
    for length in sorted({len(row.kept) for row in rows}):
        places = [place for place, row in enumerate(rows) if len(row.kept) == length]
        found = _asked(call, [_taken(rows[place], rows[place].kept, width) for place in places], width)
        answers |= dict(zip(places, found, strict=True))
    if len({answer.shape for answer in answers.values()}) > 1:
        raise Unclear("the shape of the predictions depends on the length of the rows")
    return np.stack([answers[place] for place in range(len(rows))])


def _asked(call: Call, rows: Sequence[_Row], width: int) -> Array:
    """Return the predictions (rows, numbers), the longest rows first in the call: packed rows must be sorted."""
    order = np.argsort([-len(row.kept) for row in rows], kind="stable")
    together = {
        name: np.concatenate([rows[place].given[name] for place in order]) if array.ndim else array
        for name, array in rows[0].given.items()
    }
    answers = call(together)
    if len(rows) == 1 and answers.shape[:1] != (1,):
        answers = answers[None]  # squeezed
    if answers.shape[:1] != (len(rows),) or width in answers.shape[1:]:
        raise Unclear("the model does not return a single prediction for each row")
    return np.asarray(answers.reshape(len(rows), -1)[np.argsort(order)])


def _row_of(inputs: Inputs, padded: Padded, row: int) -> _Row:
    given = {name: array[row : row + 1] if array.ndim else array for name, array in inputs.items()}
    return _Row(given, np.flatnonzero(padded.words[row]))


def _with_words(inputs: Inputs, padded: Padded, row: int, number: int) -> _Row:
    """Replace the words of a row, but not the first, by those of other rows; the padding stays."""
    size, one = len(padded.words), _row_of(inputs, padded, row)
    other = (row + 1 + number * max(1, size // (OTHERS + 1))) % size
    words, changed = inputs[padded.name][other][padded.words[other]], one.given[padded.name].copy()
    changed[0, one.kept[1:]] = words[np.arange(len(one.kept) - 1) % max(1, len(words))]
    return _Row({**one.given, padded.name: changed}, one.kept)


def _filled(row: _Row, name: str) -> _Row:
    """Put words in the place of the padding."""
    filled = row.given[name].copy()
    blank = np.setdiff1d(np.arange(filled.shape[1]), row.kept)
    filled[:, blank] = filled[:, row.kept[np.arange(len(blank)) % len(row.kept)]]
    return _Row({**row.given, name: filled}, row.kept)


def _turned(row: _Row, width: int) -> _Row:
    """Move the padding to the other end."""
    blank = np.setdiff1d(np.arange(width), row.kept)
    ends_blank = blank[-1] == width - 1
    return _taken(row, np.concatenate([blank, row.kept] if ends_blank else [row.kept, blank]), width)


def _taken(row: _Row, positions: Array, width: int) -> _Row:
    given = {
        name: array[:, positions] if array.ndim > 1 and array.shape[1] == width else array
        for name, array in row.given.items()
    }
    return _Row(given, row.kept)


def _ending_in_padding(name: str, array: Array) -> Padded | None:
    if "mask" in name or "label" in name or array.dtype == bool or array.ndim not in (2, 3):
        return None
    if (array.dtype.kind == "f") != (array.ndim == 3) or array.shape[0] < 2 or array.shape[1] <= LONG:
        return None
    blank = (array == 0).all(-1) if array.ndim == 3 else array == most_frequent(array[:, -1])
    runs = np.cumprod(blank[:, ::-1], 1).sum(1)
    if not _is_padded(runs) or int(blank.sum()) != int(runs.sum()):  # the value occurs among the words
        return None
    return Padded(name, ~blank, None if array.ndim == 3 else int(most_frequent(array[:, -1])))


def _is_padded(runs: Array) -> bool:
    """Whether runs of equal positions, one for each row, look like padding."""
    return bool((runs >= SHORT).sum() >= MIN_PADDED and runs.max() >= LONG and runs.min() < runs.max())


def most_frequent(values: Array) -> Any:
    """Return the most frequent of some values, the least of several."""
    kinds, counts = np.unique(values, return_counts=True)
    return kinds[counts.argmax()]


def _effects(plain: Array, replaced: Array) -> Array:
    """Return the largest effect of other words on each prediction (rows, numbers)."""
    apart = np.abs(replaced.reshape(len(plain), OTHERS, -1) - plain[:, None])
    return np.asarray(apart.max((1, 2)))


def _apart(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max())


def _median(values: Array) -> float:
    """Return the lower median; 0 of none."""
    return float(np.sort(values)[(len(values) - 1) // 2]) if len(values) else 0.0
