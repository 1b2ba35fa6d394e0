"""Finds images whose channels were moved by a reshape, which does not move pixels in memory."""

from __future__ import annotations

import numpy as np

from diagnostics.facts.array import Array

IMAGES = 8  # minimum number of images
MAX_IMAGES = 64  # images examined
SIDE = 16  # minimum side in pixels; in smaller images, neighbours differ by chance
CHANNELS = 3  # a grey image has no axis to move, and a fourth channel seldom looks like the first three
CALMER = 0.6  # of the differences between neighbours: the share left after restoring the order
NEIGHBOURS = 0.5  # of the differences between any two pixels; below it, neighbours are alike


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
