"""Measures how far evaluation data is from training data: inputs, the order of their channels, and targets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.inputs import InputFacts, InputSample, TargetSides

MIN_SHARE_OF_CHANNELS = 0.8  # of the channels must agree: a domain shift changes some of them, preprocessing all
HALF = 0.5
CLOSE = 1.5  # times the scale, and one standard deviation: batches with the same preprocessing
WIDE = 64  # numbers in an example; with at least this many, it counts as an image
FEW_ROWS = 16  # passes with fewer rows are combined

RANGES: Final = {"0 to 1": (0.0, 1.0), "-1 to 1": (-1.0, 1.0), "0 to 255": (0.0, 255.0)}
"""The usual ranges of pixels."""

EDGE = 0.02  # of such a range: the maximum distance of the extremes from its bounds
LEVELS = (8, 512)  # distinct values of a channel made from bytes, minimum and maximum
UNEVEN = 0.05  # of the distance between two such values
STANDARD = 0.3  # from mean 0 and standard deviation 1: standardised features, as far as few rows can show
SAME_SHAPE = 0.5  # standard deviations between quantiles; with 50 rows these are uncertain by 0.2
DRIFT = 0.6  # correlation of a row with the next; above it, the rows are a series, and series drift

MAX_STANDARD_ERRORS = 4.0  # standard errors within which two channels count as the same
ELSEWHERE = 10.0  # standard errors from the channel at the same index
PLAIN = 0.25  # of a standard deviation, or of the spread: the smallest difference that matters
MIN_CHANNELS = 2  # channels that moved
COLOURS = (3, 4)  # channels of an image; with more, only some are examined
FEATURES = 3

TRAINING_ROWS: Final = 32
EVALUATION_ROWS: Final = 16
OUTPUTS: Final = 64  # more than this are an image or a signal
VALUES: Final = 10  # distinct targets on either side; fewer are grades or classes
FACTOR: Final = 5.0  # in scale, if the inputs of both sides look alike
FACTOR_STANDARD: Final = 3.0  # the same if only one side has mean 0 and standard deviation 1
HUGE: Final = 20.0  # if the inputs are unknown, or the rows are a series, which drifts


@dataclass(frozen=True)
class Moments:
    """The distribution of each channel over some batches, float64 (channels,).

    Attributes:
        means: of the numbers.
        deviations: standard deviations.
        spreads: from the 5% quantile to the 95% quantile.
        judged: bool, whether there are more than two values, and they spread.
    """

    means: Array
    deviations: Array
    spreads: Array
    judged: Array


def moments(numbers: Array) -> Moments:
    """Measure numbers (channels, n)."""
    low, high = np.quantile(numbers, [0.05, 0.95], axis=1)
    deviations = numbers.std(axis=1)
    several = np.array([len(np.unique(channel[:4096])) > 2 for channel in numbers])
    floor = 1e-6 * np.abs(numbers).max(axis=1)
    return Moments(
        numbers.mean(axis=1), deviations, high - low, several & (deviations > floor) & (high - low > floor)
    )


@dataclass(frozen=True)
class Distance:
    """The distance between two sets of batches by channel, for channels that can be judged in both.

    Attributes:
        scales: natural logarithm of the ratio of the spreads; the one nearest to 0 of several measures.
        shifts: absolute distance of the means in standard deviations of the first set.
    """

    scales: Array
    shifts: Array

    def is_close(self) -> bool:
        """Return whether both sets were evidently preprocessed alike."""
        return bool(np.median(np.abs(self.scales)) < np.log(CLOSE) and np.median(self.shifts) < 1)

    def is_scaled(self, factor: float) -> bool:
        """Return whether nearly all channels are wider by a factor, or nearly all are narrower."""
        limit = np.log(factor)
        return bool(max((self.scales > limit).mean(), (self.scales < -limit).mean()) >= MIN_SHARE_OF_CHANNELS)

    def is_changed(self, factor: float, deviations: float) -> bool:
        """Return whether nearly all channels are scaled or shifted, and half of them are scaled."""
        scaled = np.abs(self.scales) > np.log(factor)
        return bool(
            (scaled | (self.shifts > deviations)).mean() >= MIN_SHARE_OF_CHANNELS and scaled.mean() >= HALF
        )

    def is_moved(self, deviations: float) -> bool:
        """Return whether nearly all means moved by at least this much."""
        return bool((self.shifts > deviations).mean() >= MIN_SHARE_OF_CHANNELS)


def distance(one: Moments, other: Moments) -> Distance | None:
    """Compare two sets; None if no channel can be judged in both."""
    both = one.judged & other.judged
    if not both.any():
        return None
    ratios = np.stack(
        [_log_ratio(one.deviations, other.deviations, both), _log_ratio(one.spreads, other.spreads, both)]
    )
    agree = np.sign(ratios[0]) == np.sign(ratios[1])
    scales = np.where(agree, np.sign(ratios[0]) * np.abs(ratios).min(axis=0), 0.0)
    shifts = np.abs(other.means - one.means)[both] / one.deviations[both]
    return Distance(scales, shifts)


def _log_ratio(one: Array, other: Array, both: Array) -> Array:
    return np.asarray(np.log(other[both] / one[both]))


def grouped(batches: tuple[Array, ...]) -> list[Array]:
    """Combine batches of few rows; return float64 (channels, numbers) for each group of enough rows."""
    groups: list[Array] = []
    waiting: list[Array] = []
    for batch in batches:
        waiting.append(np.moveaxis(batch, 1, 0).reshape(batch.shape[1], -1).astype(np.float64))
        if sum(part.shape[1] // max(1, batch.shape[2]) for part in waiting) >= FEW_ROWS:
            groups.append(np.concatenate(waiting, axis=1))
            waiting = []
    return groups


def is_standardised(of: Moments) -> bool:
    """Return whether every channel has a mean of about 0 and a standard deviation of about 1."""
    fits = (np.abs(of.means) < STANDARD) & (np.abs(of.deviations - 1) < STANDARD)
    return bool(of.judged.any() and fits[of.judged].mean() >= MIN_SHARE_OF_CHANNELS)


def usual_range(numbers: Array) -> str | None:
    """Name the usual pixel range that the numbers fill from end to end; None if there is none."""
    lowest, highest = float(numbers.min()), float(numbers.max())
    for name, (least, most) in RANGES.items():
        slack = EDGE * (most - least)
        if least - 1e-3 <= lowest <= least + slack and most - slack <= highest <= most + 1e-3:
            return name
    return None


def level_distances(numbers: Array) -> Array:
    """Return the distance between neighbouring values of each channel, float64 (channels,).

    NaN for channels whose values are not evenly spaced, as values made from bytes are.
    """
    return np.array([_level_distance(np.unique(channel)) for channel in numbers])


def _level_distance(values: Array) -> float:
    if not LEVELS[0] <= len(values) <= LEVELS[1]:
        return float("nan")
    width, least = float(values[-1] - values[0]), float(np.diff(values).min())
    count = round(width / least)
    if not len(values) - 1 <= count <= LEVELS[1]:
        return float("nan")
    places = (values - values[0]) * count / width
    return width / count if np.abs(places - np.round(places)).max() < UNEVEN else float("nan")


def is_series(sample: InputSample) -> bool:
    """Return whether each row resembles the row before it, as in a grid or the windows of a time series."""
    if sample.positional:
        return False
    pairs: list[tuple[float, float]] = []
    means = [batch.reshape(len(batch), -1).mean(axis=1, dtype=np.float64) for batch in sample.batches]
    for rows in means if sample.rows >= 4 * len(means) else [np.concatenate(means)]:
        pairs += pairwise(rows)
    if len(pairs) < FEW_ROWS // 2:
        return False
    first, second = np.array(pairs).T
    if not first.std() or not second.std():
        return False
    return bool(np.corrcoef(first, second)[0, 1] > DRIFT)


def have_same_shape(one: Array, other: Array, judged: Array) -> bool:
    """Return whether numbers (channels, n) differ in little more than mean and scale in most channels.

    Standardising changes only these; rows from another source, perhaps with outliers, differ in more.
    """
    gaps = np.abs(_profiles(one[judged]) - _profiles(other[judged])).max(axis=0)
    return bool(np.median(gaps) < SAME_SHAPE)


def _profiles(numbers: Array) -> Array:
    """Return five quantiles of each channel, in standard deviations from its mean, (5, channels)."""
    quantiles = np.quantile(numbers, [0.05, 0.25, 0.5, 0.75, 0.95], axis=1)
    return np.asarray((quantiles - numbers.mean(axis=1)) / numbers.std(axis=1))


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


def can_be_compared(sides: TargetSides) -> bool:
    """Return whether both sides have enough targets, and these are numbers, not classes."""
    one, other = sides.training, sides.evaluation
    if len(one) < TRAINING_ROWS or len(other) < EVALUATION_ROWS or one.shape[1] > OUTPUTS:
        return False
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return False
    return all(len(np.unique(side[:, 0])) >= VALUES for side in (one, other))


def unit_ratio(sides: TargetSides) -> float | None:
    """Return the ratio of the spread of evaluation targets to that of training targets; None if about equal.

    They must differ in little more than mean and scale in nearly every output, and the inputs must not differ.
    """
    one, other = sides.training.T, sides.evaluation.T
    ours, theirs = moments(one), moments(other)
    apart, alike = distance(ours, theirs), inputs_alike(sides.inputs)
    if apart is None or alike is False or not have_same_shape(one, other, ours.judged & theirs.judged):
        return None
    known = alike is True and not _is_series(sides.evaluation)
    standard = is_standardised(ours) != is_standardised(theirs)
    factor = (FACTOR_STANDARD if standard else FACTOR) if known else HUGE
    return float(np.exp(np.median(apart.scales))) if apart.is_scaled(factor) else None


def inputs_alike(inputs: InputFacts | None) -> bool | None:
    """Return whether the inputs of both sides look alike; None if unknown."""
    if inputs is None:
        return None
    found = []
    for name, sample in inputs.training.items():
        other = inputs.evaluation.get(name)
        if other is None:
            continue
        if sample.batches[0].shape[1] != other.batches[0].shape[1]:
            return False
        apart = distance(moments(sample.numbers()), moments(other.numbers()))
        found.append(None if apart is None else apart.is_close())
    return None if None in found or not found else all(found)


def _is_series(targets: Array) -> bool:
    """Return whether each row resembles the row before it."""
    values = targets.mean(axis=1)
    first, second = values[:-1], values[1:]
    if not first.std() or not second.std():
        return False
    return bool(np.corrcoef(first, second)[0, 1] > DRIFT)
