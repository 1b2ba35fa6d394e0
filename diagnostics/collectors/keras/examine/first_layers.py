"""Looks at what the first layers of a Keras model make of its inputs: their axes, and their scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import as_array
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import ScaledTwice, SwappedChannels

COLOURS = (1, 3)  # channels that an image has
LEAST = 8  # pixels of a side
SMOOTH = 0.3  # correlation of neighbours along both axes of an image
FOR_BYTES = 0.01  # a scale that is less is for numbers up to 255
RANDOM = "Random"  # what the classes of augmentations begin with
CONVOLUTIONS = (keras.layers.Conv2D, keras.layers.SeparableConv2D)


def first_layers(model: keras.Model, x: Any) -> Iterator[SwappedChannels | ScaledTwice]:
    """Yield what is wrong there.

    Args:
        model: with weights.
        x: the inputs of a batch.
    """
    if not keras.tree.is_nested(x) and len(x.shape) == 4:
        yield from _swapped_channels(model, x)
        yield from _scaled_twice(model, x)


def _scaled_twice(model: keras.Model, x: Any) -> Iterator[ScaledTwice]:
    """Yield a rescaling of bytes that is the first layer of all, and the range of inputs that are no bytes."""
    first = _first(model)
    images = as_array(x)
    if not isinstance(first, keras.layers.Rescaling) or images is None or images.dtype.kind not in "fiu":
        return
    scale, low, high = np.asarray(first.scale, np.float64), float(images.min()), float(images.max())
    if scale.size == 1 and 0 < float(scale.max()) < FOR_BYTES and -1 <= low < high <= 1:
        yield ScaledTwice(first.name, float(scale.max()), low, high)


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
