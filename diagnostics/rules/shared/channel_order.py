"""Checks whether evaluation uses the training channels in a different order."""

from __future__ import annotations

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.inputs import InputSample

MAX_STANDARD_ERRORS = 4.0  # standard errors within which two channels count as the same
ELSEWHERE = 10.0  # standard errors from the channel at the same index
PLAIN = 0.25  # of a standard deviation, or of the spread: the smallest difference that matters
MIN_CHANNELS = 2  # channels that moved
COLOURS = (3, 4)  # channels of an image; with more, only some are examined
FEATURES = 3


def other_order(training: InputSample, evaluation: InputSample) -> list[int] | None:
    """Return, for each evaluation channel, the training channel with the same distribution.

    Means and spreads must agree within their standard errors in every channel, and two channels must differ
    clearly from those at the same index: rows from another source differ, but are not swapped. Rows count, not
    positions, which are correlated. In images, each channel is compared with the mean of all, since brightness
    varies more.

    Returns:
        None if the order is the same, or the channels do not agree in any order.
    """
    count = training.batches[0].shape[1]
    if count not in COLOURS if training.positional else count < FEATURES:
        return None
    ours, theirs = (_rows(sample) for sample in (training, evaluation))
    apart, plain = _apart(ours, theirs)
    order = np.arange(count)
    moved = np.flatnonzero(np.diagonal(apart) > MAX_STANDARD_ERRORS)
    far = (np.diagonal(apart) > ELSEWHERE) & (np.diagonal(plain) > PLAIN)
    if far.sum() < MIN_CHANNELS:
        return None
    free, waiting = set(moved.tolist()), set(moved.tolist())
    pairs = sorted((float(apart[i, j]), int(i), int(j)) for i in moved for j in moved if i != j)
    for distance, there, here in pairs:  # of training, of evaluation
        if there in free and here in waiting and distance <= MAX_STANDARD_ERRORS:
            order[here] = there
            free.discard(there)
            waiting.discard(here)
    return None if waiting else [int(place) for place in order]


def _rows(sample: InputSample) -> Array:
    """Return one number for each distinct row and channel, float64 (rows, channels)."""
    values = np.concatenate([batch.mean(axis=2, dtype=np.float64) for batch in sample.batches])
    values = np.unique(values, axis=0)  # evaluation rows repeat after each epoch and add no information
    return values - values.mean(axis=1, keepdims=True) if sample.positional else values


def _apart(ours: Array, theirs: Array) -> tuple[Array, Array]:
    """Compare each channel of (rows, channels) with each of the other side.

    Returns:
        float64 (channels, channels): standard errors between means or mean deviations, whichever are further
        apart; and the same in standard deviations, or as a share of the deviation.
    """
    deviations = [np.abs(values - np.median(values, axis=0)) for values in (ours, theirs)]
    means = _errors(ours, theirs)
    spreads = _errors(*deviations)
    gap = np.abs(ours.mean(axis=0)[:, None] - theirs.mean(axis=0))
    scale = np.sqrt(ours.var(axis=0)[:, None] + theirs.var(axis=0)) / np.sqrt(2)
    wide, narrow = (side.mean(axis=0) for side in deviations)
    larger = np.maximum(wide[:, None], narrow)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.stack([gap / scale, np.abs(wide[:, None] - narrow) / larger])
    return np.maximum(means, spreads), np.nan_to_num(shares, nan=0.0, posinf=np.inf).max(axis=0)


def _errors(ours: Array, theirs: Array) -> Array:
    gap = np.abs(ours.mean(axis=0)[:, None] - theirs.mean(axis=0))
    error = np.sqrt(ours.var(axis=0)[:, None] / len(ours) + theirs.var(axis=0) / len(theirs))
    floor = 1e-9 * max(float(np.abs(ours).max()), float(np.abs(theirs).max()), 1e-30)
    return np.asarray(np.where(gap <= floor, 0.0, gap / np.maximum(error, floor)))
