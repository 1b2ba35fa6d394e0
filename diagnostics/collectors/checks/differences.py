"""Compares two arrays: where they first differ, whether that is rounding, and how one follows from the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from diagnostics.collectors.shared.arrays import LARGEST, is_tensor
from diagnostics.facts.array import Array
from diagnostics.facts.checks import Difference, Pattern

# Two orders of adding n numbers differ by about sqrt(n) roundings, and a function rounds a few times more.
ROUNDINGS = 8
# A difference up to this power of a dtype's rounding error, which vanishes in float64, is rounding; a larger one
# is a loss of precision that is worth to be told, such as that of E[x^2] - E[x]^2.
PRECISION_KEPT = 0.5
PERMUTED_AXES = 5  # 120 permutations
EXACT = 1e-4  # relative: a factor that is the same everywhere

_ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
_ROUNDING |= {"complex64": _ROUNDING["float32"], "complex128": _ROUNDING["float64"]}


def dtype_of(value: Any) -> str:
    """Name the dtype of a tensor or an array: ``float32``; empty for a number of Python, which has none."""
    dtype = getattr(value, "dtype", None)
    return "" if dtype is None else str(getattr(dtype, "name", dtype)).rpartition(".")[2]


def rounding_of(*dtypes: str) -> float:
    """Return the relative rounding error of the coarsest of some dtypes; 0 if none is a float."""
    return max((_ROUNDING.get(dtype, 0.0) for dtype in dtypes), default=0.0)


def numbers(value: Any) -> Array | None:
    """Copy a tensor, an array or a number to NumPy, floats as float64; None if it holds no numbers or too many."""
    try:
        if is_tensor(value):
            value = value.detach()
            if value.numel() > LARGEST:
                return None
            if "float" in str(value.dtype) and value.element_size() < 4:
                value = value.float()
            value = value.resolve_conj().resolve_neg().cpu().numpy() if hasattr(value, "resolve_conj") else value
        array = np.array(value)
    except Exception:  # ragged lists, strings, lost devices
        return None
    if array.dtype.kind in "biu":
        return array if array.size <= LARGEST else None
    if array.dtype.kind in "fc" or "float" in array.dtype.name:  # bfloat16 of TensorFlow is of kind V
        return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return None


def tolerance(expected: Array, rounding: float, terms: int, scale: float = 0.0) -> Array:
    """Return float64, the shape of `expected`: by how much each value may differ, for it was rounded otherwise.

    Args:
        expected: the values.
        rounding: the relative rounding error of their dtype.
        terms: numbers that may have been added up.
        scale: of what was added up, where the sum may cancel; 0 to take that of the values.
    """
    sizes = np.abs(expected).astype(np.float64)
    there = sizes[np.isfinite(sizes)]
    typical = math.sqrt(float(np.mean(there**2))) if there.size else 0.0
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    return np.asarray(roundings(terms) * rounding * np.maximum(sizes, max(typical, scale)))


def roundings(terms: int) -> float:
    """Return how many rounding errors are allowed where so many numbers are added up."""
    return ROUNDINGS * math.sqrt(max(terms, 1))


def differs(got: Array, expected: Array, allowed: Array | float) -> Array:
    """Return bool, their common shape: where two arrays differ. NaN equals NaN, and infinity itself."""
    if got.dtype.kind in "biu" and expected.dtype.kind in "biu" and not np.any(allowed):
        return np.asarray(got != expected)
    finite = np.isfinite(got) & np.isfinite(expected)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(got - expected.astype(np.float64) if got.dtype.kind == "b" else got - 1.0 * expected)
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        return np.asarray(np.where(finite, apart > allowed, ~same))


def difference_of(
    part: str, got: Array, expected: Array, allowed: Array, terms: int, dtype: str
) -> Difference | None:
    """Describe where two arrays of one shape differ; None if they do not."""
    bad = differs(got, expected, allowed)
    if not bad.any():
        return None
    index = tuple(int(axis[0]) for axis in np.nonzero(bad)) if bad.ndim else ()
    with np.errstate(invalid="ignore", over="ignore"):
        largest = float(np.abs(got[bad] - 1.0 * expected[bad]).max())

    def close(one: Array, other: Array) -> bool:
        limit = float(np.max(allowed)) if np.size(allowed) else 0.0
        return one.shape == other.shape and not differs(one, other, limit).any()

    return Difference(
        part=part,
        kind="values",
        got=got[index].item(),
        expected=expected[index].item(),
        index=index,
        largest=largest if math.isfinite(largest) else None,
        tolerance=float(np.broadcast_to(allowed, expected.shape)[index]),
        roundings=roundings(terms) if rounding_of(dtype) else None,
        count=int(bad.sum()),
        total=int(bad.size),
        dtype=dtype,
        shape=expected.shape,
        pattern=pattern_of(got, expected, close),
    )


def pattern_of(got: Array, expected: Array, close: Callable[[Array, Array], bool]) -> Pattern | None:
    """Find how an array follows from the expected one: permuted, flipped, shifted, scaled, broadcast.

    Args:
        got: any shape.
        expected: any shape; what is looked for is the same for both shapes or follows from it.
        close: whether two arrays are equal, but for rounding.
    """
    if expected.size < 2 or got.size < 2:
        return _factor(got, expected)
    if got.size == expected.size and (found := _moved(got, expected, close)) is not None:
        return found
    if got.shape != expected.shape:
        return _expanded(got, expected, close)
    return _factor(got, expected) or _shifted(got, expected, close) or _reduced(got, expected)


def _moved(got: Array, expected: Array, close: Callable[[Array, Array], bool]) -> Pattern | None:
    """Look for the same values in other places."""
    axes = range(expected.ndim)
    orders = list(itertools.permutations(axes)) if expected.ndim <= PERMUTED_AXES else []
    for order in orders[1:]:
        if got.ndim == expected.ndim and close(got, expected.transpose(order)):
            return Pattern("swapped axes", order)
    if got.shape == expected.shape:
        for axis in axes:
            if expected.shape[axis] > 1 and close(got, np.flip(expected, axis)):
                return Pattern("flipped", (axis,))
    for order in orders:  # filled row by row, where the axes were to be exchanged
        moved = expected.transpose(order)
        if (order != tuple(axes) or got.shape != expected.shape) and close(got.ravel(), moved.ravel()):
            return Pattern("refilled", order)
    return None


def _shifted(got: Array, expected: Array, close: Callable[[Array, Array], bool]) -> Pattern | None:
    for axis in range(expected.ndim):
        length = expected.shape[axis]
        for by in (1, -1):
            if length < 3:
                continue
            later, earlier = (slice(1, None), slice(None, -1))[::by], (slice(None, -1), slice(1, None))[::by]
            mine = got[(slice(None),) * axis + (later[0],)]
            theirs = expected[(slice(None),) * axis + (earlier[0],)]
            if np.ptp(theirs) > 0 and close(mine, theirs):
                return Pattern("shifted", (axis,), by)
    return None


def _factor(got: Array, expected: Array) -> Pattern | None:
    """Look for one factor between all values."""
    if got.shape != expected.shape or not expected.size:
        return None
    there = np.isfinite(got) & np.isfinite(expected) & (np.abs(expected) > 0)
    if not there.any() or (got[~there] != 0).any():
        return None
    ratios = got[there] / expected[there]
    factor = complex(np.median(ratios.real)).real
    if factor in (0.0, 1.0) or (np.abs(ratios - factor) > EXACT * abs(factor)).any():
        return None
    return Pattern("scaled", (), factor)


def _expanded(got: Array, expected: Array, close: Callable[[Array, Array], bool]) -> Pattern | None:
    """Look for the expected values repeated along an axis, or for an axis too many."""
    if got.size <= expected.size:
        return None
    for place in range(got.ndim):
        first = np.take(got, 0, axis=place)
        if first.shape == expected.shape and close(first, expected):
            return Pattern("broadcast", (place,))
    one = [size for size in expected.shape if size != 1]
    if got.ndim > len(one) and all(size in got.shape for size in one):
        return Pattern("broadcast")
    return None


def _reduced(got: Array, expected: Array) -> Pattern | None:
    """Look for an axis along which nothing differs any more, or that was normalised in the place of another."""
    if got.dtype.kind not in "fc":
        return None
    for axis in range(expected.ndim):
        if expected.shape[axis] > 1 and not np.ptp(got.real, axis).any() and np.ptp(expected.real, axis).any():
            return Pattern("constant", (axis,))
    mine, theirs = (_normalised_axis(array) for array in (got, expected))
    if mine is not None and theirs is not None and mine != theirs:
        return Pattern("other normalised axis", (theirs, mine))
    return None


def _normalised_axis(array: Array) -> int | None:
    """Return the only axis along which all sums are the same, as those of a softmax or of centred values are."""
    found = [
        axis
        for axis, size in enumerate(array.shape)
        if size > 1 and array.size > size and np.ptp(array.sum(axis).real) <= EXACT * np.abs(array.sum(axis)).max()
    ]
    return found[0] if len(found) == 1 else None
