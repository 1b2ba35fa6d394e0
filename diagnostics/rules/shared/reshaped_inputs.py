"""Finds inputs whose axes were moved by a reshape, which does not move numbers in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from diagnostics.facts.array import Array

IMAGES = 8  # minimum number of images or series
MAX_IMAGES = 64  # images or series examined
SIDE = 16  # minimum side in pixels; in smaller images, neighbours differ by chance
CHANNELS = 3  # a grey image has no axis to move, and a fourth channel seldom looks like the first three
CALMER = 0.6  # of the differences between neighbours: the share left after restoring the order
NEIGHBOURS = 0.5  # of the differences between any two pixels; below it, neighbours are alike
LONGEST = 65_536  # most numbers of a series
SMOOTH = 0.7  # of the differences between any two numbers of a series; below it, it is smooth, with noise
JUMP, ALIKE = 1.4, 1.15  # a jump is more than this many steps; a difference of at most this many is a step
CERTAIN = 3.0  # standard errors by which a jump must be larger


def put_back(images: Array) -> tuple[bool, float, float] | None:
    """Compare neighbouring pixels of colour images with the neighbours in the other axis order.

    An image is smooth: neighbours differ less than other pixels. A reshape from (height, width, 3) to
    (3, height, width) puts the three colours of a pixel side by side, and the rows three pixels apart.

    Returns:
        Whether the channels are first; the mean squared difference of neighbours in the images as they are, and
        after restoring the order, both as shares of that between any two pixels. None if the former is not
        clearly larger, or these are not colour images.
    """
    if images.ndim != 4 or len(images) < IMAGES or images.dtype.kind not in "fiu":
        return None
    first, last = images.shape[1] == CHANNELS, images.shape[3] == CHANNELS
    if first == last:
        return None
    taken = np.ascontiguousarray(images[:MAX_IMAGES], dtype=np.float64)
    sides = taken.shape[2:] if first else taken.shape[1:3]
    if min(sides) < SIDE or not np.isfinite(taken).all():
        return None
    if first:
        given, other = taken, taken.reshape(len(taken), *sides, CHANNELS).transpose(0, 3, 1, 2)
    else:
        given, other = taken.transpose(0, 3, 1, 2), taken.reshape(len(taken), CHANNELS, *sides)
    spread = 2 * taken.var()
    if not spread:
        return None
    before, after = _between_neighbours(given) / spread, _between_neighbours(other) / spread
    return (first, before, after) if after <= min(CALMER * before, NEIGHBOURS) else None


def _between_neighbours(images: Array) -> float:
    """Return the mean squared difference of neighbours along both sides, the last two axes."""
    return float(np.mean([(np.diff(images, axis=axis) ** 2).mean() for axis in (-2, -1)]))


@dataclass(frozen=True)
class ReshapedSeries:
    """Series (n, a, b) whose numbers are in the order of (n, b, a).

    Attributes:
        time_last: whether the original series had time on the last axis.
        calm: mean squared difference of numbers that were neighbours in time, as a share of that between any two.
        other: the same, in case of `time_last` at each multiple of a, where an original channel ends; otherwise
            the least of one, a - 1, a + 1 and b places apart.
    """

    time_last: bool
    calm: float
    other: float


def reshaped_series(series: Array) -> ReshapedSeries | None:
    """Look for signals that are smooth only in the other order of their axes.

    Each column of the given series is standardised first, so columns of different scales do not differ. Two
    reshapes then leave a mark in memory:

    - of series with time last: neighbours are alike even where one row of b numbers ends and the next begins, but
      not at each multiple of a, where one channel ends and the next begins.
    - of series with time first: numbers are alike a places apart, but neither one place, nor a - 1, a + 1 or b
      places apart.

    Args:
        series: floats (n, a, b).
    """
    if series.ndim != 3 or len(series) < IMAGES or series.dtype.kind != "f":
        return None
    a, b = series.shape[1:]
    if a == b or min(a, b) < 2 or a * b > LONGEST:
        return None
    taken = np.asarray(series[:MAX_IMAGES], np.float64)
    if not np.isfinite(taken).all() or not (spread := taken.std(axis=(0, 1))).any():
        return None
    memory = ((taken - taken.mean(axis=(0, 1))) / np.where(spread, spread, 1)).reshape(len(taken), -1)
    differing = 2 * memory.var()

    def apart(places: int) -> Array:  # (rows, a * b - places)
        return np.asarray((memory[:, places:] - memory[:, :-places]) ** 2 / differing)

    def is_jump(jumps: Array, steps: Array) -> bool:  # both (rows,)
        more = jumps - JUMP * steps
        return bool(more.mean() > CERTAIN * more.std() / math.sqrt(len(more)))

    between, places = apart(1), np.arange(1, a * b)
    at_a, at_b = places % a == 0, places % b == 0
    if (~at_a & ~at_b).any() and (at_b & ~at_a).any():
        inside, across, jumps = (between[:, at].mean(1) for at in (~at_a & ~at_b, at_b & ~at_a, at_a))
        calm = float(inside.mean())
        if calm <= SMOOTH and across.mean() <= ALIKE * calm and is_jump(jumps, inside):
            return ReshapedSeries(time_last=True, calm=calm, other=float(jumps.mean()))
    steps, places = apart(a), np.arange(a * b - a)
    across = places // b != (places + a) // b
    calm, others = float(steps.mean()), min((apart(n).mean(1) for n in {1, a - 1, a + 1, b}), key=np.mean)
    goes_on = across.all() or steps[:, across].mean() <= ALIKE * steps[:, ~across].mean()
    if calm <= SMOOTH and goes_on and is_jump(others, steps.mean(1)):
        return ReshapedSeries(time_last=False, calm=calm, other=float(others.mean()))
    return None
