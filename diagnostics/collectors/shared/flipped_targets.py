"""Compares how well masks, boxes and points fit their images as given, and mirrored. NumPy only.

A linear fit predicts the mask from the colours around each pixel, so it does not know left from right. It is
fitted to half of the rows, each mirrored as it fits best, and judges the other half. A box is a filled mask, and
points are discs in a mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.data import OrientedPairs

from .arrays import to_array

MAX_ROWS, PER_BATCH = 96, 16  # kept
TRIES = 64  # batches that are looked at
SMALLEST, SIDE = 8, 32  # pixels of a side; of longer ones every k-th is kept
CHANNELS, OF_MASK = 16, 16  # at most: channels of an image, and different values or channels of a mask
FLIPS = ((), (2,), (1,), (1, 2))
ROUNDS = 3  # of fitting
FITS = 0.3  # least correlation of prediction and mask, in a row that is judged
WORSE = 0.9  # of the other rows' masks must fit worse, however they are mirrored
MISFIT = 0.25  # of the best correlation: highest one of a wrong orientation, unless two objects look alike
IN_PIXELS = 1.2  # numbers of boxes that are larger
VALID = 0.95  # of the rows, if four numbers are a box
POINTS, RADIUS = 64, 0.08  # of a row at most; of the disc around each, as a share of the image


class ImageTargets:
    """Takes batches of arrays, or of tensors of PyTorch, which stay on their device until the end."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, Any]] = []
        self._kind: tuple[Any, ...] | None = None  # shapes, and the first axis of the image and of the mask
        self._sizes: tuple[int, ...] = ()
        self._rows = self._tries = self._judged = 0
        self._found: OrientedPairs | None = None

    def wants(self) -> bool:
        """Return whether more rows are needed."""
        return self._rows < MAX_ROWS and self._tries < TRIES

    def take(self, inputs: Sequence[Any], targets: Sequence[Any]) -> bool:
        """Copy some rows of the only image and its mask, box or points; return whether the batch has them."""
        self._tries += 1
        found = list(_pairs(inputs, targets))
        if not found or any(other[0] is not found[0][0] for other in found):
            return False
        image, target, *axes = found[0]
        kind = (*image.shape[1:], *target.shape[1:], *axes)
        self._kind = self._kind or kind
        if kind == self._kind:
            rows = [_thin(image[:PER_BATCH], axes[0]), _thin(target[:PER_BATCH], axes[1])]
            self._kept.append(tuple(part.clone() if hasattr(part, "clone") else part.copy() for part in rows))
            self._sizes = image.shape[axes[0] : axes[0] + 2]
            self._rows += len(rows[0])
        return True

    def facts(self) -> OrientedPairs | None:
        """Return how the targets fit; None without rows, and if no target is a mask, a box or points."""
        if len(self._kept) > self._judged:
            self._judged, self._found = len(self._kept), self._compare()
        return self._found

    @np.errstate(all="ignore")
    def _compare(self) -> OrientedPairs | None:
        assert self._kind is not None
        first, of_mask = self._kind[-2:]
        arrays = [(to_array(image), to_array(target)) for image, target in self._kept]
        parts = [[part for part in both if part is not None] for both in zip(*arrays, strict=True)]
        if not len(parts[0]) == len(parts[1]) == len(self._kept):  # complex numbers
            return None
        images, targets = (np.concatenate(part)[:MAX_ROWS] for part in parts)
        distinct = np.unique(images.reshape(len(images), -1), axis=0, return_index=True)[1]
        images, targets = _last(images[distinct], first).astype(np.float32), targets[distinct]
        if not np.isfinite(images).all() or not np.isfinite(targets).all():
            return None
        kind: Literal["mask", "box", "points"] = (
            "mask" if of_mask else "box" if targets.shape[1:] == (4,) else "points"
        )
        if of_mask:
            masks = _classes(_last(targets, of_mask))
        else:
            masks = (_filled if kind == "box" else _discs)(targets, self._sizes, images.shape[1:3])
        seen = _features(images)
        fits = [(len(own), own, others) for mask in masks for own, others in (_fits(seen, mask),) if len(own)]
        if not fits:
            return None
        rows, own, others = max(fits, key=lambda fit: float(fit[1].max(axis=1).mean()))
        judged = own[own.max(axis=1) > np.maximum(FITS, others)]
        usual = judged.mean(axis=0).argmax() if len(judged) else 0
        best = np.where(judged[:, usual] <= MISFIT * judged.max(axis=1), judged.argmax(axis=1), usual)
        counts = np.bincount(best, minlength=len(FLIPS)).tolist()
        return OrientedPairs(rows, kind=kind, fits=tuple(counts))


def _pairs(inputs: Sequence[Any], targets: Sequence[Any]) -> Iterator[tuple[Any, Any, int, int]]:
    """Yield images with their masks, boxes or points, and the axes of their heights; 0 for those without."""
    for image in inputs:
        for target in targets:
            for first in (1, 2) if image.ndim in (3, 4) and target.ndim and len(image) == len(target) else ():
                sizes = image.shape[first : first + 2]
                if len(sizes) < 2 or min(sizes) < SMALLEST or _channels(image, first) > CHANNELS:
                    continue
                if image.ndim == 4 and (tuple(target.shape[1:]) == (4,) or _may_be_points(target)):
                    yield image, target, first, 0
                for of_mask in (1, 2) if target.ndim in (3, 4) else ():
                    if target.shape[of_mask : of_mask + 2] == sizes and _channels(target, of_mask) <= OF_MASK:
                        yield image, target, first, of_mask


def _may_be_points(target: Any) -> bool:
    pairs = target.shape[-1] == 2 if target.ndim == 3 else target.ndim == 2 and target.shape[1] % 2 == 0
    if not pairs or not 0 < np.prod(target.shape[1:]) <= 2 * POINTS:
        return False
    return bool(((target != 0) & (target != 1)).any())  # else classes


def _channels(part: Any, first: int) -> int:
    return int(part.shape[-1 if first == 1 else 1]) if part.ndim == 4 else 1


def _thin(part: Any, first: int) -> Any:
    """Keep every k-th pixel of rows, the same ones from both ends."""
    steps = [-(-size // SIDE) for size in part.shape[first : first + 2]] if first else []
    kept = [
        slice((size - 1) % step // 2, None, step) for size, step in zip(part.shape[first:], steps, strict=False)
    ]
    return part[(slice(None),) * first + tuple(kept)]


def _last(part: Array, first: int) -> Array:
    """Return (n, height, width, channels)."""
    part = part[..., None] if part.ndim == 3 else part
    return np.moveaxis(part, 1, -1) if first == 2 else part


def _classes(mask: Array) -> list[Array]:
    values = np.unique(mask)
    if not 1 < len(values) <= OF_MASK:
        return []
    one_value = mask == values[-1] if len(values) == 2 else mask == values
    return [(one_value if mask.shape[-1] == 1 else mask).astype(np.float32)]


def _filled(boxes: Array, sizes: Sequence[int], thin: Sequence[int]) -> list[Array]:
    """Return what four numbers enclose, read as two corners, centre and size, and corner and size, from x or y."""
    found, places = [], [(np.arange(size) + 0.5) / size for size in thin]
    boxes = boxes / ((*sizes[::-1], *sizes[::-1]) if boxes.max() > IN_PIXELS else 1)
    for order in ([0, 1, 2, 3], [1, 0, 3, 2]):
        one, other = np.split(boxes[:, order], 2, axis=1)
        for low, high in ((one, other), (one - other / 2, one + other / 2), (one, one + other)):
            x, y = ((low[:, [k]] <= places[1 - k]) & (places[1 - k] <= high[:, [k]]) for k in (0, 1))
            filled = (y[:, :, None] & x[:, None])[..., None].astype(np.float32)
            if _varies(filled).mean() >= VALID:
                found.append(filled)
    return found


def _discs(points: Array, sizes: Sequence[int], thin: Sequence[int]) -> list[Array]:
    """Return discs around points, which are read as x and y, and as y and x."""
    found, (down, across) = [], [(np.arange(size) + 0.5) / size for size in thin]
    points = points.reshape(len(points), -1, 2)
    points = (points + 1) / 2 if points.min() < 0 and points.max() <= IN_PIXELS else points
    for one in (points, points[..., ::-1]):
        x, y = np.moveaxis(one / (sizes[::-1] if points.max() > IN_PIXELS else 1), -1, 0)[..., None, None]
        near = (across - x) ** 2 + (down[:, None] - y) ** 2 <= RADIUS**2
        discs = near.any(axis=1)[..., None].astype(np.float32)
        if _varies(discs).mean() >= VALID:
            found.append(discs)
    return found


def _varies(mask: Array) -> Array:
    varies: Array = mask.reshape(len(mask), -1).std(axis=1) > 0
    return varies


def _features(images: Array) -> Array:
    """Return the colours around each pixel, and how far they are from the median of the image."""
    parts = np.concatenate([images, np.abs(images - np.median(images, axis=(1, 2), keepdims=True))], axis=-1)
    near = _blurred(parts)
    found = np.concatenate([near, _blurred(near)], axis=-1)
    found -= found.mean(axis=(1, 2), keepdims=True)
    found /= found.std(axis=(0, 1, 2)) + 1e-12
    return found


def _blurred(parts: Array) -> Array:
    for axis in (1, 2):
        size = parts.shape[axis]
        wide = np.take(parts, np.clip(np.arange(-1, size + 1), 0, size - 1), axis)
        parts = np.stack([np.take(wide, np.arange(size) + shift, axis) for shift in range(3)]).mean(axis=0)
    return parts


def _fits(seen: Array, masks: Array) -> tuple[Array, Array]:
    """Correlate predictions with masks that are not blank.

    Returns:
        The correlation with the row's own mask in each orientation (n, 4), and one that most of the other rows'
        masks do not reach (n,).
    """
    known = _varies(masks)
    seen, turned = seen[known], np.stack([np.flip(_centred(masks[known]), flip) for flip in FLIPS])
    own, others = np.zeros((len(seen), len(FLIPS))), np.zeros(len(seen))
    if len(seen) < 4:
        return own[:0], others[:0]
    for half in range(2):
        fitted, judged = (np.arange(half ^ other, len(seen), 2) for other in range(2))
        best = np.zeros(len(fitted), int)
        for _ in range(ROUNDS):
            weights = _weights(seen[fitted], turned[best, fitted])
            every = _correlations(seen[fitted] @ weights, turned[:, fitted])
            best = every.diagonal(axis1=1, axis2=2).argmax(axis=0)
        every = _correlations(seen[judged] @ weights, turned[:, judged])
        own[judged] = every.diagonal(axis1=1, axis2=2).T
        highest = every.max(axis=0)
        np.fill_diagonal(highest, np.nan)
        others[judged] = np.nanquantile(highest, WORSE, axis=1)
    return own, others


def _weights(seen: Array, wanted: Array) -> Array:
    seen, wanted = (part.reshape(-1, part.shape[-1]) for part in (seen, wanted))
    square = seen.T @ seen
    return np.linalg.solve(square + 1e-3 * len(seen) * np.eye(len(square), dtype=square.dtype), seen.T @ wanted)


def _centred(mask: Array) -> Array:
    mask = mask - mask.mean(axis=(1, 2), keepdims=True)
    centred: Array = mask / (np.sqrt(np.square(mask).sum(axis=(1, 2, 3), keepdims=True)) + 1e-12)
    return centred


def _correlations(predicted: Array, turned: Array) -> Array:
    """Return (4, n, n): of each prediction with each mask, in each orientation."""
    flat = _centred(predicted).reshape(len(predicted), -1)
    found: Array = flat @ turned.reshape(len(turned), len(flat), -1).transpose(0, 2, 1)
    return found
