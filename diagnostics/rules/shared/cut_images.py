"""Finds images whose channels were moved by a reshape, which leaves the pixels where they are in memory."""

from __future__ import annotations

import numpy as np

from diagnostics.facts.array import Array

IMAGES = 8  # least number that is looked at
MOST = 64  # of them
SIDE = 16  # pixels, at least: of fewer, neighbours differ by chance
CHANNELS = 3  # a grey image has nothing to move, and a fourth channel seldom looks like the first three
CALMER = 0.6  # of the differences between neighbours that are left once the numbers are put back
NEIGHBOURS = 0.5  # of the differences between pixels anywhere: below, neighbours are alike


def put_back(images: Array) -> tuple[bool, float, float] | None:
    """Compare neighbours of a batch of colour images with those of the same numbers in the other order of axes.

    A picture is smooth: neighbours differ less than other pixels. A reshape from (height, width, 3) to
    (3, height, width) puts the three colours of a pixel beside each other, and the rows three pixels apart.

    Returns:
        Whether the channels stand first; the mean squared difference of neighbours as the images are, and that
        of the images put back, both as shares of those between any two pixels. None where the former is not
        clearly larger, or these are no colour images.
    """
    if images.ndim != 4 or len(images) < IMAGES or images.dtype.kind not in "fiu":
        return None
    first, last = images.shape[1] == CHANNELS, images.shape[3] == CHANNELS
    if first == last:
        return None
    taken = np.ascontiguousarray(images[:MOST], dtype=np.float64)
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
