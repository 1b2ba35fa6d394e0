"""Takes a small part of each input, to compare batches by; works on tensors and arrays alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.inputs import InputSample

ROWS = 32  # of a batch, from all over it: an evaluation set may be sorted, and come as one batch
FEATURES = 256  # of a table
CHANNELS, POSITIONS = 8, 64  # of an image or a sequence; a part has 64 KiB at most
ALIKE, TRAITS = 256, 32  # rows of a table among which near-copies are looked for, and numbers of each
ALIKE_PICTURES, COLOURS = 64, 4  # the same for images and sequences, with as many numbers of each channel

# Inputs that are no measurements: their scale says nothing.
NO_MEASUREMENTS = ("mask", "label", "target", "position", "weight", "length")


def is_measured(name: str) -> bool:
    """Whether an input of this name may be compared by its scale."""
    return not any(part in name.lower() for part in NO_MEASUREMENTS)


def part_of(values: Any) -> Any:
    """Return a view of a part of a batch (rows, ...): of a tensor or an array, by basic slices."""
    return _spread(values, ROWS, FEATURES, CHANNELS, POSITIONS)


def traits_of(values: Any) -> Any:
    """Return a view of more rows of a batch, and of fewer numbers of each: 32 KiB at most."""
    rows = ALIKE if len(values.shape) <= 2 else ALIKE_PICTURES
    return _spread(values, rows, TRAITS, COLOURS, TRAITS)


def _spread(values: Any, rows: int, features: int, channels: int, positions: int) -> Any:
    shape = tuple(values.shape)
    axis = channel_axis(shape)
    others = len(shape) - 2
    each = int(positions ** (1 / others)) if others > 0 else 0
    limits = [rows] + [
        (channels if place == axis else each) if others else features for place in range(1, len(shape))
    ]
    steps = [max(1, -(-length // max(1, limit))) for length, limit in zip(shape, limits, strict=True)]
    return values[tuple(slice(None, None, step) for step in steps)]


def channel_axis(shape: tuple[int, ...]) -> int:
    """Return the axis of channels or features: of an image the second, or the last if only that is short."""
    if len(shape) == 3:
        return 1 if shape[1] < shape[2] else 2
    if len(shape) > 3 and shape[-1] <= CHANNELS < shape[1]:
        return len(shape) - 1
    return 1


def arranged(part: Array, axis: int) -> Array:
    """Return a part as float32 (rows, channels, positions)."""
    part = part.astype(np.float32)
    if part.ndim < 2:
        return part.reshape(-1, 1, 1)
    return np.moveaxis(part, axis, 1).reshape(len(part), part.shape[axis], -1)


@dataclass
class Collected:
    """Parts of one input, of batches of the same kind."""

    size: int
    integers: bool
    positional: bool
    axis: int
    parts: list[Any] = field(default_factory=list)
    traits: list[Any] = field(default_factory=list)

    def sample(self) -> InputSample | None:
        """Return the facts; None where the batches differ in their channels."""
        batches = tuple(arranged(np.asarray(part), self.axis) for part in self.parts)
        if len({batch.shape[1] for batch in batches}) != 1:
            return None
        traits = tuple(np.asarray(one, np.float32).reshape(len(one), -1) for one in self.traits)
        return InputSample(batches, self.size, self.integers, self.positional, traits)


def collected(shape: tuple[int, ...], integers: bool) -> Collected:
    """Return a collection for inputs of this shape, with no part yet."""
    return Collected(math.prod(shape[1:]), integers, len(shape) > 3, channel_axis(shape))


def samples(inputs: Mapping[str, Collected]) -> dict[str, InputSample]:
    """Return the facts of those inputs that have some."""
    found = {name: one.sample() for name, one in inputs.items() if one.parts}
    return {name: one for name, one in found.items() if one is not None}


def samples_of_batches(batches: Iterable[Mapping[str, Any]]) -> dict[str, InputSample]:
    """Return the facts of batches of arrays (rows, ...) by name."""
    seen: dict[str, Collected] = {}
    for batch in batches:
        take_arrays(seen, batch)
    return samples(seen)


def take_arrays(into: dict[str, Collected], batch: Mapping[str, Any]) -> None:
    """Add a part of each array (rows, ...) of a batch."""
    for name, array in batch.items():
        if array.dtype.kind not in "iuf" or not array.ndim or not array.size or not is_measured(name):
            continue
        one = into.setdefault(name, collected(array.shape, array.dtype.kind != "f"))
        if channel_axis(array.shape) == one.axis:
            one.parts.append(np.array(part_of(array)))
            one.traits.append(np.array(traits_of(array)))
