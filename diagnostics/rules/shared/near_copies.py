"""Finds evaluation rows that are near-duplicates of training rows: far nearer than any row that is not a copy.

Each number is replaced by its rank, so distances do not depend on an input's scale or distribution. If values lie
around a few levels, such as noisy bits, the noise then counts as much as any other difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import InputFacts, InputSample

MIN_TRAINING, MIN_EVALUATION = 200, 50  # different rows
MAX_TRAINING, MAX_EVALUATION = 2048, 512  # rows compared
NUMBERS = 5  # of a row that hardly repeat; with fewer, some neighbours are near by chance
DIFFERENT = 0.5  # different values of such a number, as a share of the rows
COPIES = 8  # training rows made from the same row as an evaluation row, at most; classes have more
MOSTLY = 0.5  # of the evaluation rows with copies have no more
GAP = 2.5  # ours: the nearest other row is this many times as far away as the farthest copy
WITHIN, CROSSED = 1.25, 0.15  # around the middle of the gap: a factor; distances there, as a share of those below
SHARE = 0.1  # ours: of the evaluation rows
FOUND = 40  # evaluation rows; if they were training rows, some of their copies would be equal to them
CLASSES = 2  # times the model's outputs: if there are fewer groups of near rows, they may be its classes
BY_CHANCE = 10.0  # times the share of gaps that chance explains
EXPECTED, AGREEING = 5.0, 3.0  # pairs of rows of one set; and the factor by which there may be fewer or more
NEAR_ROW, FAR_ROW = 16, 32  # neighbours whose distances tell in how many directions rows differ


@dataclass(frozen=True)
class NearCopies:
    """Evaluation rows with near-copies among the training rows.

    Attributes:
        rows: evaluation rows compared.
        near: of these, the ones that are near-copies.
        training_rows: rows that they were compared with.
        distance: median distance from a near-copy to its nearest training row, divided by the distance to the
            nearest training row that is not a near-copy.
        by_chance: share of the evaluation rows expected to have such a gap by chance.
        pairs: rows of one training batch, or both of the evaluation, that are near-copies of each other.
        expected: how many there would be if these were as frequent as between training and evaluation.
    """

    rows: int
    near: int
    training_rows: int
    distance: float
    by_chance: float
    pairs: int
    expected: float


def near_copies(inputs: InputFacts) -> NearCopies | None:
    """Return what is found; None if too few rows are near-copies, or those are explained otherwise.

    If rows were copied before a random split, those of one set are near-copies of each other as often as those
    of different sets. If the rows are augmented in each epoch, and the same rows are evaluated, no two rows of a
    batch are near-copies; in contrastive training, all of them are. An evaluation of the training rows, as for a
    training accuracy, is left out: some of its rows are equal to those that were kept of the training.

    Raises:
        NotApplicable: there are too few rows, or their numbers repeat.
    """
    training, evaluation = _sides(inputs)
    rows = np.concatenate([training.rows, evaluation.rows])
    ranks = _ranks(rows)
    ours, theirs = ranks[: len(training.rows)], ranks[len(training.rows) :]
    far = _distances(theirs, ours)
    ordered = np.sort(np.partition(far, FAR_ROW, axis=1)[:, : FAR_ROW + 1], axis=1)
    by_chance = _gaps_by_chance(ordered)
    gaps = ordered[:, 1 : COPIES + 1] / ordered[:, :COPIES]
    chosen, last = gaps.max(axis=1) >= GAP, gaps.argmax(axis=1)
    if chosen.mean() < max(SHARE, BY_CHANCE * by_chance):
        return None
    number = np.arange(len(ordered))
    middle = float(np.exp(np.median(np.log(ordered[number, last] * ordered[number, last + 1])[chosen]) / 2))
    if ((far > middle / WITHIN) & (far < middle * WITHIN)).sum() > CROSSED * (far < middle).sum():
        return None
    found = ordered[:, 0] < middle
    if found.mean() < SHARE or found.sum() < FOUND or (ordered[found, COPIES] > middle).mean() < MOSTLY:
        return None
    if _groups(theirs[found], middle) <= CLASSES * inputs.outputs:
        return None
    leaked = _passes_with(found, evaluation.batch)  # a script may evaluate other data too
    share = float((far[leaked] < middle).mean())
    within, possible = _pairs(ours, training.batch, middle)
    among, others = _pairs(theirs[leaked], np.zeros(leaked.sum()), middle)
    expected = (possible * share, others * share)
    if expected[1] < EXPECTED or not all(map(_agree, (within, among), expected)):
        return None
    next_row = np.where(ordered > middle, ordered, np.inf).min(axis=1)
    distance = float(np.median(ordered[found, 0] / next_row[found]))
    return NearCopies(len(theirs), int(found.sum()), len(ours), distance, by_chance, within + among, sum(expected))


@dataclass(frozen=True)
class _Side:
    """Different rows (n, numbers), and the batch of each (n,)."""

    rows: Array
    batch: Array


def _sides(inputs: InputFacts) -> tuple[_Side, _Side]:
    names = sorted(name for name in inputs.training if not inputs.training[name].integers)
    training = _together([inputs.training[name] for name in names])
    evaluation = _together([inputs.evaluation[name] for name in names])
    if training is None or evaluation is None or training.rows.shape[1] != evaluation.rows.shape[1]:
        raise NotApplicable("needs batches of the same floating-point inputs in training and in an evaluation")
    training = _first(training, MAX_TRAINING)
    evaluation = _first(_held_out(evaluation, {row.tobytes() for row in training.rows}), MAX_EVALUATION)
    if len(training.rows) < MIN_TRAINING or len(evaluation.rows) < MIN_EVALUATION:
        raise NotApplicable(
            f"needs {MIN_TRAINING} different training rows, and {MIN_EVALUATION} evaluation rows that are not "
            "equal to any of them"
        )
    both = np.concatenate([training.rows, evaluation.rows])
    measured = np.array([len(np.unique(column)) >= DIFFERENT * len(column) for column in both.T], bool)
    if measured.sum() < NUMBERS:
        raise NotApplicable(f"needs inputs with at least {NUMBERS} numbers that hardly repeat")
    return _Side(training.rows[:, measured], training.batch), _Side(evaluation.rows[:, measured], evaluation.batch)


def _together(samples: list[InputSample]) -> _Side | None:
    """Put the inputs of each row side by side; None where the batches differ in their sizes."""
    batches = [one.traits for one in samples]
    if not batches or not batches[0] or len({tuple(map(len, traits)) for traits in batches}) > 1:
        return None
    if any(len({part.shape[1] for part in traits}) > 1 for traits in batches):
        return None
    rows = np.concatenate([np.concatenate(traits) for traits in batches], axis=1)
    batch = np.repeat(np.arange(len(batches[0])), [len(part) for part in batches[0]])
    return _Side(rows, batch)


def _first(side: _Side, most: int) -> _Side:
    """Return the first rows that differ from each other."""
    finite = np.isfinite(side.rows).all(axis=1)
    rows, batch = side.rows[finite], side.batch[finite]
    chosen = np.sort(np.unique(rows, axis=0, return_index=True)[1])[:most]
    return _Side(rows[chosen], batch[chosen])


def _held_out(side: _Side, trained: set[bytes]) -> _Side:
    """Leave out passes with training rows, and those that are so small that they may have none by chance."""
    equal = np.array([row.tobytes() in trained for row in side.rows], bool)
    sizes = np.bincount(side.batch)
    of_training = np.bincount(side.batch, equal) > 0
    if not of_training.any():
        return side
    rate = equal.sum() / sizes[of_training].sum()
    kept = (~of_training & (rate * sizes >= EXPECTED))[side.batch]
    return _Side(side.rows[kept], side.batch[kept])


def _ranks(rows: Array) -> Array:
    """Return the mean rank of each number among those in its place, from 0 to 1."""
    ranks = np.empty(rows.shape)
    for place, column in enumerate(rows.T):
        ordered = np.sort(column)
        below, above = np.searchsorted(ordered, column), np.searchsorted(ordered, column, "right")
        ranks[:, place] = (below + above) / (2 * len(column))
    return ranks


def _distances(ones: Array, others: Array) -> Array:
    """Return the distance between any two rows; half the width of a rank at least."""
    squares = np.square(ones).sum(axis=1)[:, None] + np.square(others).sum(axis=1) - 2 * ones @ others.T
    distances: Array = np.sqrt(np.maximum(squares, (0.5 / len(others)) ** 2))
    return distances


def _gaps_by_chance(ordered: Array) -> float:
    """Return the share of rows that have such a gap by chance, from the growth of the distances beyond copies.

    Of rows that differ in D directions, the distance to the next neighbour is x times that to the m-th with
    probability x to the power of -m D.
    """
    growth = float(np.log(ordered[:, FAR_ROW - 1] / ordered[:, NEAR_ROW - 1]).mean())
    directions = np.log(FAR_ROW / NEAR_ROW) / max(growth, 1e-9)
    return float(min(1.0, sum(GAP ** (-directions * copies) for copies in range(1, COPIES + 1))))


def _groups(ranks: Array, middle: float) -> int:
    """Count the groups of rows that are linked by near-copies."""
    near = _distances(ranks, ranks) < middle
    np.fill_diagonal(near, True)
    group = np.arange(len(ranks))
    while True:
        least = np.where(near, group, len(ranks)).min(axis=1)
        if (least == group).all():
            return len(np.unique(group))
        group = least


def _passes_with(found: Array, batch: Array) -> Array:
    """Return whether each row is from a pass that has at least half as many near-copies as all passes together."""
    shares = np.bincount(batch, found) / np.maximum(np.bincount(batch), 1)
    return np.asarray(2 * shares[batch] >= found.mean())


def _agree(pairs: int, expected: float) -> bool:
    return (expected < EXPECTED or pairs * AGREEING >= expected) and pairs <= AGREEING * expected + EXPECTED


def _pairs(ranks: Array, batch: Array, middle: float) -> tuple[int, int]:
    """Count the near-copies within the batches, and all pairs of rows there."""
    near = possible = 0
    for number in np.unique(batch):
        rows = ranks[batch == number]
        above = np.triu_indices(len(rows), 1)
        near += int((_distances(rows, rows)[above] < middle).sum())
        possible += len(above[0])
    return near, possible
