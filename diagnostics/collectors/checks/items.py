"""Reads items of a dataset, finds where two of them differ, and how one follows from the other."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from diagnostics.collectors.shared.arrays import fields
from diagnostics.errors import InvalidInput, what
from diagnostics.facts.array import Array
from diagnostics.facts.checks import Mismatch, Pattern

from .differences import differs, numbers, pattern_of

ROUNDING = 1e-5  # relative: a mean computed in another order differs by less in float32
SHOWN = 60  # characters of a text
CLOSE = 1e-3  # of the range of the values
CHANNELS = 4  # of an axis whose every index may be normalised by numbers of its own


def read_items(dataset: Any, indices: Collection[int] | None, count: int) -> list[Any]:
    """Read the items at some places, the same ones each time; the first ones of a stream.

    Raises:
        InvalidInput: it has no items, or each reading would take them away.
    """
    places = item_places(dataset, indices, count)
    if places is None:
        items = list(itertools.islice(iter(dataset), count))
    else:
        items = [dataset[place] for place in places]
    if not items:
        raise InvalidInput(f"This check was given {what(dataset)} without items: there is nothing to check.")
    return items


def item_places(dataset: Any, indices: Collection[int] | None, count: int) -> list[int] | None:
    """Return the places to read, from all over a dataset with an index; None for a stream.

    Raises:
        InvalidInput: this is no dataset, or one that can be read only once.
    """
    if hasattr(dataset, "__next__"):
        raise InvalidInput(
            f"This check was given {what(dataset)}, which can be read only once. Pass the dataset that it is made "
            "of, or a list of its items."
        )
    indexed = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    if isinstance(dataset, str | bytes | Mapping | type) or not (indexed or hasattr(dataset, "__iter__")):
        raise InvalidInput(
            f"This check was given {what(dataset)}. It takes a dataset: something with __getitem__ and __len__, "
            "such as a list of examples, or something that can be iterated again and again."
        )
    if not indexed:
        return None
    if indices is not None:
        return list(indices)
    return (
        [int(place) for place in np.unique(np.linspace(0, len(dataset) - 1, count).astype(int))]
        if len(dataset)
        else []
    )


def mismatch(
    one: Any, other: Any, may_change: Collection[str] = (), atol: float = 0.0, path: str = ""
) -> Mismatch | None:
    """Find the first place where two items differ.

    Args:
        one: a number, text, tensor, array or image; or a dict, list, tuple or dataclass of such.
        other: the same.
        may_change: keys that are not compared, wherever they stand; "0" is the first part of a tuple.
        atol: by how much numbers may differ; floats may differ by `ROUNDING` of their size in any case, and by
            what float32 rounds off the largest of the array.
        path: of the two.
    """
    if (parts := _parts(one)) is not None and (others := _parts(other)) is not None:
        keys, other_keys = (tuple(key for key in found if key not in may_change) for found in (parts, others))
        if keys != other_keys and set(keys) != set(other_keys):
            return Mismatch(path, f"parts {_listed(keys)}", f"parts {_listed(other_keys)}")
        for key in keys:
            inner = f"{path}[{int(key) if key.isdigit() else key!r}]"
            if (found := mismatch(parts[key], others[key], may_change, atol, inner)) is not None:
                return found
        return None
    if isinstance(one, str | bytes) or isinstance(other, str | bytes):
        return None if type(one) is type(other) and one == other else Mismatch(path, shown(one), shown(other))
    mine, theirs = numbers(one), numbers(other)
    if mine is None or theirs is None:
        return None if _same_objects(one, other) else Mismatch(path, shown(one), shown(other))
    if mine.shape != theirs.shape:
        return Mismatch(path, f"shape {mine.shape}", f"shape {theirs.shape}")
    return _of_numbers(path, mine, theirs, atol)


def _of_numbers(path: str, one: Array, other: Array, atol: float) -> Mismatch | None:
    exact = one.dtype.kind in "biu" and other.dtype.kind in "biu"
    largest = np.maximum(*(np.abs(np.nan_to_num(array * 1.0, posinf=0.0, neginf=0.0)) for array in (one, other)))
    # log(exp(x)) of a small x is as far off as that of the item's largest number.
    rounded = ROUNDING * largest + np.finfo(np.float32).eps * largest.max(initial=0.0)
    bad = differs(one, other, np.full(one.shape, atol) if exact else atol + rounded)
    if not bad.any():
        return None
    index = tuple(int(axis[0]) for axis in np.nonzero(bad)) if bad.ndim else ()
    with np.errstate(invalid="ignore"):
        size = float(np.abs(one[bad] * 1.0 - other[bad] * 1.0).max())
    return Mismatch(
        path, shown(one[index].item()), shown(other[index].item()), index, int(bad.sum()), int(bad.size),
        size if math.isfinite(size) else None,
    )  # fmt: skip


def _parts(value: Any) -> dict[str, Any] | None:
    """Name the parts of a dict, a tuple, a dataclass, or a list that holds more than numbers; None for a leaf."""
    if isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__")):
        return {str(key): value[key] for key in value.keys()}  # noqa: SIM118
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list) and not all(isinstance(part, bool | int | float) for part in value):
        return fields(value)
    return None


def _same_objects(one: Any, other: Any) -> bool:
    """Whether two values that hold no numbers agree, as far as that can be told."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    try:
        equal = one == other
    except Exception:  # of a class of the user's
        return False
    return bool(equal) if isinstance(equal, bool | np.bool_) else False


def shown(value: Any) -> str:
    """Show a value in a message: short, and tensors and images by what they are."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bool | int | str | bytes) or value is None:
        text = repr(value)
        return text if len(text) <= SHOWN else f"{text[: SHOWN - 2]}…{text[0]}"
    array = numbers(value)
    return what(value) if array is None else f"{what(value)} of shape {array.shape}"


def _listed(keys: Collection[str]) -> str:
    return ", ".join(keys) if keys else "none"


def place_words(found: Mismatch) -> str:
    """Say where two items differ: ``['image'][0, 3, 5]: 0.2, then 0.3; 12 of 60 numbers, by up to 0.4``."""
    index = "" if not found.index else f"[{', '.join(map(str, found.index))}]"
    seen = f"{found.path}{index}: {found.first} and {found.second}".removeprefix(": ")
    if found.index is None or found.total < 2:
        return seen
    largest = "" if found.largest is None else f", by up to {found.largest:.4g}"
    return f"{seen}; {found.count:,} of {found.total:,} numbers differ{largest}"


def arrays_in(item: Any, path: str = "") -> Iterator[tuple[str, Array]]:
    """Yield each array of an item with its path."""
    if (parts := _parts(item)) is not None:
        for key, part in parts.items():
            yield from arrays_in(part, f"{path}[{int(key) if key.isdigit() else key!r}]")
    elif not isinstance(item, str | bytes) and (array := numbers(item)) is not None:
        yield path, array


def relation(back: Any, original: Any) -> str:
    """Describe what `decode` left undone, as a sentence; empty if no simple relation holds."""
    if isinstance(back, str) and isinstance(original, str):
        return _of_texts(back, original)
    got, expected = numbers(back), numbers(original)
    if got is None or expected is None or not got.size or not expected.size:
        return ""
    reach = float(np.ptp(expected[np.isfinite(expected)])) if np.isfinite(expected).any() else 0.0

    def close(one: Array, other: Array) -> bool:
        return one.shape == other.shape and not differs(one, other, CLOSE * reach).any()

    if got.shape == expected.shape and expected.dtype.kind in "iu" and np.abs(got - 1.0 * expected).max() <= 1:
        return (
            "The values are off by one at most: the conversion to integers cuts off what rounding has left. Round "
            "first: (x * 255).round().to(torch.uint8)."
        )
    if (text := _cut_off(got, expected)) or (text := _of_pattern(pattern_of(got, expected, close))):
        return text
    if got.shape == expected.shape:
        return _affine(got, expected, reach)
    return ""


def _of_texts(back: str, original: str) -> str:
    if back.lower() == original.lower():
        return "Only upper and lower case differ: the tokenizer lower-cases, which is not undone."
    if back.split() == original.split():
        return "Only the spaces differ: encode or decode joins words otherwise."
    if original in back:
        before, _, after = back.partition(original)
        added = " and ".join(repr(part.strip()) for part in (before, after) if part.strip())
        return f"decode adds {added}: leave special tokens out (skip_special_tokens=True)."
    if original.startswith(back) and back:
        return f"The text is cut off after {len(back)} of {len(original)} characters: encode truncates."
    if any(mark in back and mark not in original for mark in ("[UNK]", "<unk>", "\N{REPLACEMENT CHARACTER}")):
        return "Some words come back as unknown: the vocabulary lacks them."
    return ""


def _cut_off(got: Array, expected: Array) -> str:
    if got.ndim != 1 or expected.ndim != 1 or got.shape == expected.shape:
        return ""
    shorter = min(len(got), len(expected))
    if (got[:shorter] != expected[:shorter]).any():
        return ""
    if len(got) < len(expected):
        return f"What comes back ends after {shorter} of {len(expected)}: encode truncates."
    return f"What comes back has {len(got) - shorter} more at the end: decode does not remove the padding."


def _of_pattern(found: Pattern | None) -> str:
    match found:
        case Pattern("swapped axes", axes):
            return (
                f"What comes back is the original with its axes in the order {axes}: height, width and channels "
                "are not put back. Use permute or transpose in decode."
            )
        case Pattern("refilled"):
            return (
                "What comes back holds the original's numbers in another order: reshape or view was used where "
                "axes were to be exchanged. Use permute or transpose."
            )
        case Pattern("flipped", axes):
            return f"What comes back is reversed along axis {axes[0]}: RGB and BGR, or an image turned over."
        case Pattern("scaled", _, number):
            return f"What comes back is {number:.6g} times the original: decode does not undo the scaling."
    return ""


def _affine(got: Array, expected: Array, reach: float) -> str:
    """Look for ``back = factor * original + offset``, the same everywhere or for each channel."""
    if reach == 0:
        return ""
    if (fit := _fit(got, expected, reach)) is not None:
        return (
            f"What comes back is {fit[0]:.4g} times the original {'+' if fit[1] >= 0 else '-'} {abs(fit[1]):.4g}: "
            "decode does not undo the normalisation. Invert (x - mean) / std by y * std + mean."
        )
    for axis, size in enumerate(got.shape):
        if 1 < size <= CHANNELS:
            pairs = [_fit(np.take(got, n, axis), np.take(expected, n, axis), reach) for n in range(size)]
            fits = [pair for pair in pairs if pair is not None]
            if len(fits) == size:
                seen = ", ".join(f"{factor:.4g}x{offset:+.4g}" for factor, offset in fits)
                return (
                    f"Along axis {axis} each channel comes back with a factor and an offset of its own ({seen}): "
                    "decode does not undo the normalisation, or with the numbers in another order."
                )
    low, high = got.min(), got.max()
    inside = (got > low) & (got < high)
    if inside.any() and not differs(got[inside], expected[inside], CLOSE * reach).any():
        return f"Values outside {low:.4g} to {high:.4g} are clipped, and do not come back."
    return ""


def _fit(got: Array, expected: Array, reach: float) -> tuple[float, float] | None:
    one, other = got.ravel().astype(np.float64), expected.ravel().astype(np.float64)
    if len(one) < 3 or np.ptp(other) == 0 or not (np.isfinite(one).all() and np.isfinite(other).all()):
        return None
    factor, offset = np.polyfit(other, one, 1)
    if abs(factor) < CLOSE or np.abs(factor * other + offset - one).max() > CLOSE * reach * abs(factor):
        return None
    return float(factor), float(offset)
