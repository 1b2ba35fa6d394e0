"""Looks for images with the channels first that a convolution of a Keras model reads as channels last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import as_array
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import SwappedChannels

COLOURS = (1, 3)  # channels that an image has
LEAST = 8  # pixels of a side
SMOOTH = 0.3  # correlation of neighbours along both axes of an image
CONVOLUTIONS = (keras.layers.Conv2D, keras.layers.SeparableConv2D)


def swapped_channels(model: keras.Model, x: Any) -> Iterator[SwappedChannels]:
    """Yield the shape of a batch of square images (n, channels, side, side) that is read as if channels were last.

    Args:
        model: with weights.
        x: the inputs of a batch.
    """
    if keras.tree.is_nested(x) or len(shape := tuple(x.shape)) != 4:
        return
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
