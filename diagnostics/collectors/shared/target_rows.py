"""Looks at rows of inputs together with their targets. NumPy only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.course import BlankRows, CopiedTarget, Sentinel
from diagnostics.facts.loss_contracts import LossKind

WIDE = 16  # numbers in a row that may be blank; fewer may well be equal
ROWS = 100  # from which one number tells the target without exception
OTHERS = 2  # further numbers in a row that vary from row to row: data whose rows are nothing but a code has none
VARIED = 20  # different values of such a number, and of a target that is no class
RARE = 0.05  # of the rows: a class with fewer may be told by chance
COLUMNS = 3, 64  # of a table: two numbers have nothing but a sign left, and more may be a signal, or a picture
FLAT = 1e-3  # how far the mean of a standardised row may be from 0, and its standard deviation from 1
SEVERAL = 3  # rows with the number that stands for a missing one: fewer are outliers
OFTEN = 0.005, 0.5  # of the rows that have a number in place of a missing one
FAR = 100.0  # standard deviations of the other numbers; then these are next to equal for the model
OVERLAPS = 10  # rows that go on one step after another row: windows of one series, and no rows of their own
SMOOTH = 0.5  # correlation of a value with the one before it: noise may be there to be remembered
EXACT = 1e-5  # of the spread of the targets: what rounding leaves; the value before it is further off


def only_target(rows: Array) -> float | None:
    """Return the target of all rows (n, outputs), where it is one number a row, and always the same."""
    if rows.ndim != 2 or rows.shape[1] > 1 or not len(rows) or rows.min() < rows.max():
        return None
    return float(rows[0, 0]) + 0.0  # no -0


def only_class(rows: Array) -> float | None:
    """Return the class of all rows (n, classes), a share of each class, where it is always the same one."""
    if rows.ndim != 2 or rows.shape[1] < 2 or not len(rows) or (rows != rows[0]).any():
        return None
    return float(rows[0].argmax()) if np.count_nonzero(rows[0]) == 1 == rows[0].max() else None


def blank_rows(inputs: Array, targets: Array) -> BlankRows | None:
    """Count the rows that hold one value throughout, as of files that could not be read.

    Args:
        inputs: float (n, features).
        targets: float (n, outputs), rounded.
    """
    if inputs.shape[1] < WIDE:
        return None
    flat = (inputs == inputs[:, :1]).all(axis=1)
    if not flat.any() or flat.all():
        return None
    value = float(inputs[flat][0, 0])
    blank = flat & (inputs[:, 0] == value)
    different = len(np.unique(targets[blank], axis=0))
    return BlankRows(len(inputs), int(blank.sum()), value, float((inputs[~blank] == value).mean()), different)


def copied_target(
    inputs: Array, targets: Array, kind: LossKind, last_step: int | None = None
) -> CopiedTarget | None:
    """Find the only number of a row that tells its target.

    Args:
        inputs: float (n, features).
        targets: float64 (n, outputs); of classes, a share each.
        kind: of the loss that they are of.
        last_step: how many features at the end of a row are those of the last step, where rows are sequences; 0 if
            it was not kept. A number before is to be remembered, as in a test of a recurrent network's memory;
            but not where the rows are windows of one measured series.
    """
    found = _copied(inputs, targets, kind)
    if found is None or last_step is None or found.column >= inputs.shape[1] - last_step:
        return found
    return found if last_step and found.equal and _are_windows(inputs, found.column, last_step) else None


def _are_windows(inputs: Array, column: int, features: int) -> bool:
    """Whether rows (n, steps * features) overlap, as windows of one series do, and a feature changes smoothly."""
    later = {row.tobytes() for row in np.ascontiguousarray(inputs[:, features:])}
    if sum(row.tobytes() in later for row in np.ascontiguousarray(inputs[:, :-features])) < OVERLAPS:
        return False
    steps = inputs[:, column % features :: features]
    before, after = steps[:, :-1].ravel(), steps[:, 1:].ravel()
    return bool(before.std() and after.std() and np.corrcoef(before, after)[0, 1] >= SMOOTH)


def steps_of(shape: Sequence[int], kept: int) -> int | None:
    """Return how many numbers the last step of a sequence (length, features) has; None if it is none.

    Args:
        shape: of an example.
        kept: numbers that were kept of it; 0 is returned if these are not all.
    """
    if len(shape) != 2:
        return None
    return shape[1] if shape[0] * shape[1] == kept else 0


def _copied(inputs: Array, targets: Array, kind: LossKind) -> CopiedTarget | None:
    distinct = np.array([len(np.unique(column)) for column in inputs.T])
    if len(inputs) < ROWS or (distinct >= VARIED).sum() < OTHERS:
        return None
    if kind == "mean_squared_error" and targets.shape[1] == 1:
        return _equal(inputs, targets[:, 0])
    if kind == "binary_cross_entropy" and targets.shape[1] == 1:
        return _coded(inputs, targets[:, 0].round().astype(int), distinct)
    if kind == "cross_entropy":
        return _coded(inputs, targets.argmax(axis=1), distinct)
    return None


def _equal(inputs: Array, targets: Array) -> CopiedTarget | None:
    kinds, spread = len(np.unique(targets.round(6))), float(targets.std())
    apart = np.abs(inputs - targets[:, None]).max(axis=0)
    found = np.flatnonzero(apart <= EXACT * spread)
    if kinds < VARIED or len(found) != 1:
        return None
    return CopiedTarget(int(found[0]), inputs.shape[1], len(inputs), kinds, True)


def _coded(inputs: Array, labels: Array, distinct: Array) -> CopiedTarget | None:
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2 or counts.min() < RARE * len(labels):
        return None
    found = []
    for place in np.flatnonzero(distinct == len(classes)):
        values = inputs[:, place]
        if all(len(np.unique(values[labels == label])) == 1 for label in classes):
            found.append(int(place))
    if len(found) != 1:
        return None
    return CopiedTarget(found[0], inputs.shape[1], len(inputs), len(classes), False)


def are_standardised(inputs: Array) -> bool:
    """Whether each row (n, features) has a mean of 0 and a standard deviation of 1, and the columns have not."""
    columns = inputs.shape[1]
    if len(inputs) < ROWS or not COLUMNS[0] <= columns <= COLUMNS[1]:
        return False
    if np.abs(inputs.mean(axis=1)).max() > FLAT:
        return False
    spread = inputs.std(axis=1) * np.array([[1.0], [np.sqrt(columns / (columns - 1))]])
    return bool((np.abs(spread - 1).max(axis=1) <= FLAT).any())


def sentinel(inputs: Array) -> Sentinel | None:
    """Find a column in which a part of the rows has one number, far from all others, which differ.

    Args:
        inputs: float (n, features).
    """
    if len(inputs) < ROWS or inputs.shape[1] > COLUMNS[1]:
        return None
    for place, column in enumerate(inputs.T.astype(np.float64)):
        for value in (column.min(), column.max()):
            others = column[column != value]
            share = 1 - len(others) / len(column)
            again = len(column) - len(others) >= SEVERAL
            if not again or not OFTEN[0] <= share <= OFTEN[1] or len(np.unique(others)) < VARIED:
                continue
            apart = abs(value - others.mean()) / others.std()
            if apart >= FAR:
                return Sentinel(place, float(value), share, float(apart))
    return None
