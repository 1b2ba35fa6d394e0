"""Reads rows of an image and a mask again, and compares how both were flipped or rotated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.data import OrientedPairs

from .arrays import fields, flat, to_array

ROWS, READINGS = 8, 4
SMALLEST = 8  # side of an image
OF_MASK = 16  # different values that a mask has at most, and an image more


def oriented_pairs(read: Callable[[int], Any], places: Iterable[int], seconds: float) -> OrientedPairs | None:
    """Read each row several times; None if they are not an image and a mask that are flipped or rotated.

    Args:
        read: returns the row at a place.
        places: of rows.
        seconds: after which no further row is read.
    """
    rows = compared = apart = images_moved = masks_moved = 0
    deadline = time.monotonic() + seconds
    for place in places:
        readings = [pair for _ in range(READINGS) if (pair := _image_and_mask(read(place))) is not None]
        if len(readings) < READINGS or rows == ROWS or time.monotonic() > deadline:
            break
        rows += 1
        for (image, mask), (other_image, other_mask) in combinations(readings, 2):
            of_image, of_mask = _orientations(image, other_image), _orientations(mask, other_mask)
            if of_image and of_mask:
                compared += 1
                apart += not of_image & of_mask
                images_moved += 0 not in of_image
                masks_moved += 0 not in of_mask
    if not images_moved and not masks_moved:
        return None
    return OrientedPairs(rows, compared, apart, images_moved, masks_moved)


def _image_and_mask(row: Any) -> tuple[Array, Array] | None:
    arrays = [array for value in flat(fields(row)).values() if (array := to_array(value)) is not None]
    arrays = [array for array in arrays if array.ndim in (2, 3) and min(array.shape[-2:]) >= SMALLEST]
    masks = [array for array in arrays if len(np.unique(array)) <= OF_MASK]
    images = [array for array in arrays if len(np.unique(array)) > OF_MASK]
    if len(masks) != 1 or len(images) != 1 or masks[0].shape[-2:] != images[0].shape[-2:]:
        return None
    return images[0].copy(), masks[0].copy()  # the dataset may hand out the same memory again


def _orientations(one: Array, other: Array) -> frozenset[int]:
    """Return the flips and rotations that turn one array into the other: 0 for none, to 7."""
    turned: Sequence[Array] = [
        np.rot90(flipped, turns, axes=(-2, -1)) for flipped in (one, one[..., ::-1]) for turns in range(4)
    ]
    return frozenset(number for number, array in enumerate(turned) if np.array_equal(array, other))
