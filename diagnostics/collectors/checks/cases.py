"""Reads named axes; makes the inputs on which functions are compared: those given, parts of them, random ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagnostics.errors import InvalidInput
from diagnostics.facts.array import Array
from diagnostics.facts.checks import ComparedCase

from .calls import Arguments, Caller, framework_of_value
from .differences import EXACT, numbers

# No two sizes are equal, so that no axis can be mistaken for another; small, because loops are slow.
SIZES = (4, 5, 3, 6, 2, 7)
ODD_SIZES = (3, 5, 7, 9, 11, 13)  # no multiple of a block of 2, 4 or 8
LARGER_SIZES = (8, 17, 12, 5, 3, 2)

_AXIS = re.compile(r"[A-Za-z_]\w*|\d+")
_SPEC = re.compile(r"\s*(?P<axes>[\w\s]*?)\s*(?:<\s*(?P<below>\d+)\s*)?")
SEED = 0


@dataclass(frozen=True)
class Axes:
    """The axes of an array.

    Attributes:
        names: one for each axis; a number is the size itself.
        below: integers from 0 to below this one are drawn; None for normal floats.
    """

    names: tuple[str, ...]
    below: int | None = None

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape for sizes by name."""
        return tuple(int(name) if name.isdigit() else sizes[name] for name in self.names)

    def array(self, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
        """Draw float32, or int64 where `below` is given."""
        if self.below is None:
            return rng.standard_normal(self.shape(sizes)).astype(np.float32)
        return rng.integers(0, self.below, self.shape(sizes))


def read_axes(text: str, where: str) -> Axes:
    """Read `batch time features`, `batch time 16`, or `batch time < 100` for integers from 0 to 99.

    Raises:
        InvalidInput: the text is none of these.
    """
    found = _SPEC.fullmatch(text)
    names = found["axes"].split() if found else []
    if found is None or not names or not all(_AXIS.fullmatch(name) for name in names) or found["below"] == "0":
        raise InvalidInput(
            f"{where} names its axes as {text!r}. Write one name or number for each axis, divided by spaces, such "
            'as "batch time features" or "batch 3 height width"; "batch time < 100" for integers from 0 to 99. '
            "What is no text is handed on as it is."
        )
    if "0" in names:
        raise InvalidInput(f"{where} names its axes as {text!r}. An axis of size 0 holds nothing to compare.")
    return Axes(tuple(names), None if found["below"] is None else int(found["below"]))


def varied_sizes(specs: Iterable[Axes]) -> Iterator[dict[str, int]]:
    """Yield sizes by name: distinct, odd, distinct the other way round, each axis of size 1 in turn, larger."""
    names = list(dict.fromkeys(name for axes in specs for name in axes.names if not name.isdigit()))
    if not names:
        yield {}
        return

    def of(sizes: tuple[int, ...]) -> dict[str, int]:
        return {name: sizes[place] if place < len(sizes) else 2 for place, name in enumerate(names)}

    base = of(SIZES)
    yield base
    yield of(ODD_SIZES)
    if len(names) > 1:
        yield dict(zip(names, reversed(base.values()), strict=True))
    for name in names:
        yield {**base, name: 1}
    yield of(LARGER_SIZES)


def cases(given: Arguments, caller: Caller) -> Iterator[tuple[ComparedCase, Arguments]]:
    """Yield the inputs of each case, those given first.

    Named axes are given several sizes. Of arrays, parts are taken along one axis at a time, and axes of the same
    size in several arrays are taken for the same; their values are drawn again from among themselves, unless they
    are sorted, symmetric, triangular or sum to 1, which random values would not be.
    """
    rng = np.random.default_rng(SEED)
    specs = [value for value in given.values if isinstance(value, Axes)]
    if specs:
        for sizes in varied_sizes(specs):
            values = [
                caller.of_array(value.array(sizes, rng)) if isinstance(value, Axes) else value
                for value in given.values
            ]
            name = " ".join(f"{axis}={size}" for axis, size in sizes.items()) or "random values"
            yield ComparedCase(name, sizes), given.having(values)
        return
    yield ComparedCase("the inputs given"), given
    shapes = [_shape(value) for value in given.values]
    for name, axis, size, count in _cuts(shapes):
        yield ComparedCase(name), given.having([_cut(value, axis, size, count) for value in given.values])
    if any(shapes) and (drawn := _redrawn(given.values, caller, rng)) is not None:
        yield ComparedCase("values drawn from those given"), given.having(drawn)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if framework_of_value(value) is not None else ()


def _cuts(shapes: Sequence[tuple[int, ...]]) -> Iterator[tuple[str, int | None, int, int]]:
    """Yield a name, the axis to cut (None: wherever it has the size), its size, and how much of it to take."""
    rows = Counter(shape[0] for shape in shapes if shape)
    if not rows:
        return
    size = rows.most_common(1)[0][0]
    if size > 1:
        yield "one row", 0, size, 1
    if size > 3:
        odd = size - 1 if size % 2 == 0 else size - 2
        yield f"{odd} rows", 0, size, odd
    others = {one for shape in shapes for one in shape[1:] if one > 1} - {size}
    for one in sorted(others)[:3]:
        fewer = one - 1 if one % 2 == 0 else max(1, one - 2)
        yield f"axes of size {one} cut to {fewer}", None, one, fewer
    if any(len(shape) > 1 and shape[0] == shape[-1] for shape in shapes) and size > 2:
        yield f"the last axis cut from {size} to {size - 1}", -1, size, size - 1


def _cut(value: Any, axis: int | None, size: int, count: int) -> Any:
    shape = _shape(value)
    if axis is not None and (len(shape) < (2 if axis == -1 else 1) or shape[axis] != size):
        return value
    if not shape or (axis is None and size not in shape):
        return value
    chosen = range(len(shape)) if axis is None else [axis % len(shape)]
    return value[tuple(slice(count if n in chosen and s == size else None) for n, s in enumerate(shape))]


def _redrawn(values: Sequence[Any], caller: Caller, rng: np.random.Generator) -> list[Any] | None:
    """Draw the floats of all arrays again from among their own values; None if one is of a particular form."""
    drawn, any_drawn = [], False
    for value in values:
        array = numbers(value) if _shape(value) else None
        if array is None or array.dtype.kind != "f" or not array.size:
            drawn.append(value)
            continue
        if is_particular(array) or np.ptp(array) == 0:
            return None
        fresh = caller.of_array(rng.choice(array.ravel(), array.shape))
        drawn.append(_as(fresh, value))
        any_drawn = True
    return drawn if any_drawn else None


def _as(fresh: Any, value: Any) -> Any:
    """Give a new array the dtype, and the device, of the one that it stands for."""
    if hasattr(fresh, "astype"):
        return fresh.astype(value.dtype)
    if hasattr(value, "device") and hasattr(fresh, "to"):
        return fresh.to(value)
    import tensorflow as tf

    return tf.cast(fresh, value.dtype)


def is_particular(array: Array) -> bool:
    """Whether values are sorted, sum to 1, are only 0 and 1, or make a symmetric or a triangular matrix."""
    if not np.isfinite(array).all() or np.isin(array, (0.0, 1.0)).all():
        return True
    for axis, size in enumerate(array.shape):
        if size < 2:
            continue
        steps = np.diff(array, axis=axis)
        if (steps >= 0).all() or (steps <= 0).all():
            return True
        if (array >= 0).all() and np.abs(array.sum(axis) - 1).max() < EXACT:
            return True
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] < 2:
        return False
    turned = np.swapaxes(array, -1, -2)
    scale = EXACT * np.abs(array).max()
    symmetric = np.abs(array - turned).max() <= scale or np.abs(array + turned).max() <= scale
    return bool(symmetric or not np.tril(array, -1).any() or not np.triu(array, 1).any())
