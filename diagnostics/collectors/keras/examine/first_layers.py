"""Looks at what the first layers of a Keras model make of its inputs: their axes, and their scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import as_array
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import AdaptedElsewhere, ScaledTwice, SwappedChannels

COLOURS = (1, 3)  # channels that an image has
LEAST = 8  # pixels of a side
SMOOTH = 0.3  # correlation of neighbours along both axes of an image
FOR_BYTES = 0.01  # a scale that is less is for numbers up to 255
ROWS, OFF, MOST = 16, 50.0, 0.8  # of a batch; times; of its features, whose deviation is so far from 1
SERIES = 0.5  # correlation of an example with the one before
RANDOM = "Random"  # what the classes of augmentations begin with
CONVOLUTIONS = (keras.layers.Conv2D, keras.layers.SeparableConv2D)


def first_layers(model: keras.Model, x: Any) -> Iterator[SwappedChannels | ScaledTwice | AdaptedElsewhere]:
    """Yield what is wrong there.

    Args:
        model: with weights.
        x: the inputs of a batch.
    """
    if not keras.tree.is_nested(x) and len(x.shape) == 4:
        yield from _swapped_channels(model, x)
        yield from _scaled_twice(model, x)
    if not keras.tree.is_nested(x):
        yield from _adapted_elsewhere(model, x)


def _scaled_twice(model: keras.Model, x: Any) -> Iterator[ScaledTwice]:
    """Yield a rescaling of bytes that is the first layer of all, and the range of inputs that are no bytes."""
    first = _first(model)
    images = as_array(x)
    if not isinstance(first, keras.layers.Rescaling) or images is None or images.dtype.kind not in "fiu":
        return
    scale, low, high = np.asarray(first.scale, np.float64), float(images.min()), float(images.max())
    if scale.size == 1 and 0 < float(scale.max()) < FOR_BYTES and -1 <= low < high <= 1:
        yield ScaledTwice(first.name, float(scale.max()), low, high)


def _adapted_elsewhere(model: keras.Model, x: Any) -> Iterator[AdaptedElsewhere]:
    """Yield a standardisation of each feature by numbers of another size than it has."""
    first, given = _first(model), as_array(x)
    if not isinstance(first, keras.layers.Normalization) or not first.built or first.invert or given is None:
        return
    mean, variance = (np.asarray(part, np.float64).reshape(-1) for part in (first.mean, first.variance))
    rows = given.reshape(-1, given.shape[-1]).astype(np.float64)
    if len(mean) not in (1, rows.shape[1]) or len(given) < ROWS or not np.isfinite(rows).all():
        return
    if _is_series(given):
        return
    spread = rows.std(axis=0)
    judged = (spread > 0) & (variance > 0)
    if not judged.any():
        return
    middle, wide = (np.broadcast_to(part, spread.shape)[judged] for part in (mean, np.sqrt(variance)))
    after = spread[judged] / wide
    size = (np.abs(rows.mean(axis=0)[judged]) + 2 * spread[judged]) / (np.abs(middle) + 2 * wide)
    small, large = (after <= 1 / OFF) & (size <= 1 / OFF), (after >= OFF) & (size >= OFF)
    if (small | large).mean() >= MOST:
        deviation = float(np.sqrt(variance.mean()))
        yield AdaptedElsewhere(
            first.name, float(mean.mean()), deviation, float(rows.mean()), float(spread[judged].mean()),
            float(np.median(after)),
        )  # fmt: skip


def _is_series(given: Array) -> bool:
    """Whether each example resembles the one before: then a batch is a part of what it was taken from."""
    means = given.reshape(len(given), -1).astype(np.float64).mean(axis=1)
    one, other = means[:-1], means[1:]
    return bool(one.std() and other.std() and np.corrcoef(one, other)[0, 1] > SERIES)


def _first(model: keras.Model) -> Any:
    """Return the first layer that changes what it is given, within a base, too; augmentations are passed over."""
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            return _first(layer)
        if not isinstance(layer, keras.layers.InputLayer) and not type(layer).__name__.startswith(RANDOM):
            return layer
    return None


def _swapped_channels(model: keras.Model, x: Any) -> Iterator[SwappedChannels]:
    """Yield the shape of square images (n, channels, side, side) that are read as if their channels were last."""
    shape = tuple(x.shape)
    if shape[1] not in COLOURS or shape[2] != shape[3] or shape[2] < LEAST:
        return
    first = next((layer for layer in model._flatten_layers() if isinstance(layer, CONVOLUTIONS)), None)
    if first is None or first.data_format != "channels_last" or _read(first) != shape[3]:
        return
    images = as_array(x)
    if images is not None and all(_correlation(images, axis) >= SMOOTH for axis in (2, 3)):
        yield SwappedChannels(first.name, shape)


def _read(layer: Any) -> int | None:
    """Return how many channels a convolution reads."""
    kernel = next((variable for variable in layer.weights if len(variable.shape) == 4), None)
    return None if kernel is None or getattr(layer, "groups", 1) != 1 else int(kernel.shape[-2])


def _correlation(images: Array, axis: int) -> float:
    values = images.astype(np.float64)
    size = values.shape[axis]
    one, other = (np.take(values, range(*cut), axis).ravel() for cut in ((0, size - 1), (1, size)))
    return float(np.corrcoef(one, other)[0, 1]) if one.std() and other.std() else 0.0
