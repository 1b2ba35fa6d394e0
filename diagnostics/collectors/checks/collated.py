"""Compares batches: with the items that they were made of, and with those of another pass."""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagnostics.collectors.shared.arrays import fields, flat
from diagnostics.errors import InvalidInput, typed_message, what
from diagnostics.facts.array import Array

from .differences import differs, numbers
from .items import ROUNDING, arrays_in, shown

MASKS = ("attention_mask", "padding_mask", "mask")


@dataclass(frozen=True)
class RowMismatch:
    """A row of a batch that is not its item.

    Attributes:
        part: the key, or the position in a tuple.
        row: in the batch.
        reason: what is wrong, as a sentence without its subject.
        order: whether the part holds the right rows in another order than the others.
    """

    part: str
    row: int
    reason: str
    order: bool = False


def batch_mismatch(batch: Any, items: Sequence[Any], may_change: Collection[str] = ()) -> RowMismatch | str | None:
    """Compare each row of a batch with its item; rows may be longer by padding.

    Rows may stand in another order, such as that of their lengths, if all parts of the batch agree on it.

    Returns:
        The first row that is not its item; a sentence if batch and items cannot be compared; None if they agree.
    """
    parts = _columns(batch, items)
    rows = [_renamed(_named(item), parts) for item in items]
    shared = [name for name in rows[0] if name in parts and name not in may_change]
    missing = [name for name in rows[0] if name not in parts and name not in may_change and _numeric(rows, name)]
    if missing:
        return f"the items have {missing[0]!r}, and the batch has only {', '.join(parts) or 'nothing'}"
    compared = [name for name in shared if _length(parts[name]) is not None]
    if not compared:
        return "no part of the items is found in the batch"
    for name in compared:
        if len(items) not in _shape(parts[name])[:2]:
            return f"{name!r} of the batch has {_length(parts[name])} rows, made of {len(items)} items"
    agree = {}
    for name in compared:
        parts[name], agree[name] = _agreement(parts[name], [row.get(name) for row in rows])
    everywhere = np.logical_and.reduce(list(agree.values()))
    if everywhere.diagonal().all() or _one_to_one(everywhere):
        return _wrong_mask(parts, rows, may_change) if everywhere.diagonal().all() else None
    return _first_wrong(parts, rows, agree)


def _first_wrong(
    parts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], agree: Mapping[str, Array]
) -> RowMismatch:
    wrong = next((name for name, found in agree.items() if not found.diagonal().all()))
    reordered = [name for name, found in agree.items() if not found.diagonal().all() and _one_to_one(found)]
    in_order = [name for name, found in agree.items() if found.diagonal().all()]
    if reordered and len(reordered) + len(in_order) == len(agree):
        name = reordered[0]
        row = int(np.flatnonzero(~agree[name].diagonal())[0])
        item = int(np.flatnonzero(agree[name][row])[0])
        beside = f", while {in_order[0]!r} stands in the order of the items" if in_order else ""
        return RowMismatch(name, row, f"holds item {item}{beside}", order=True)
    row = int(np.flatnonzero(~agree[wrong].diagonal())[0])
    return RowMismatch(wrong, row, _reason(parts[wrong][row], rows[row].get(wrong)))


def _agreement(column: Any, values: Sequence[Any]) -> tuple[Any, Array]:
    """Say which row of a batch is which item, but for padding.

    Returns:
        the column, rows first: some collators put the time there, as `pad_sequence` does by itself; and
        bool (rows, items).
    """
    shape = _shape(column)
    if shape[0] == len(values):
        found = _equal_rows(column, values)
        if found.diagonal().all() or shape[1:2] != (len(values),):
            return column, found
    turned = numbers(column)
    if turned is None:
        return column, _equal_rows(column, values)
    turned = np.swapaxes(turned, 0, 1)
    found_turned = _equal_rows(turned, values)
    if shape[0] == len(values) and not found_turned.diagonal().all():
        return column, found
    return turned, found_turned


def _equal_rows(column: Any, values: Sequence[Any]) -> Array:
    count = len(values)
    found = np.zeros((count, count), dtype=bool)
    for row in range(count):
        for item in range(count):
            found[row, item] = not _reason(column[row], values[item])
    return found


def _reason(row: Any, item: Any) -> str:
    """Say why a row is not its item with padding; empty if it is."""
    if isinstance(item, str | bytes) or item is None:
        return "" if row == item else f"is {shown(row)}, the item {shown(item)}"
    mine, theirs = numbers(row), numbers(item)
    if mine is None or theirs is None:
        return "" if row is item or type(row) is type(item) else f"is {shown(row)}, the item {shown(item)}"
    mine, theirs = _same_rank(mine, theirs)
    if mine.ndim != theirs.ndim:
        return f"has shape {mine.shape}, the item {theirs.shape}"
    if any(size < wanted for size, wanted in zip(mine.shape, theirs.shape, strict=True)):
        return f"has shape {mine.shape}, the item {theirs.shape}: it was cut off"
    ends = [slice(0, size) for size in theirs.shape]
    starts = [slice(whole - size, None) for whole, size in zip(mine.shape, theirs.shape, strict=True)]
    if not _differ(mine[tuple(ends)], theirs).any():
        return _padding(mine, ends)
    if mine.shape != theirs.shape and not _differ(mine[tuple(starts)], theirs).any():
        return _padding(mine, starts)
    bad = _differ(mine[tuple(ends)], theirs)
    index = tuple(int(axis[0]) for axis in np.nonzero(bad)) if bad.ndim else ()
    place = f" at [{', '.join(map(str, index))}]" if index else ""
    return f"is {shown(mine[index].item())}{place}, the item {shown(theirs[index].item())}"


def _same_rank(row: Array, item: Array) -> tuple[Array, Array]:
    """Drop an axis of size 1 that only one of them has, as (batch, 1) for one number each."""
    if row.ndim == item.ndim + 1 and row.shape[:1] == (1,):
        return row[0], item
    if item.ndim == row.ndim + 1 and item.shape[:1] == (1,):
        return row, item[0]
    return row, item


def _differ(row: Array, item: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return differs(row, item, ROUNDING * np.abs(np.nan_to_num(item * 1.0, posinf=0.0, neginf=0.0)))


def _padding(row: Array, inside: list[slice]) -> str:
    outside = np.ones(row.shape, dtype=bool)
    outside[tuple(inside)] = False
    values = np.unique(row[outside])
    if len(values) > 1:
        return f"is padded with {len(values)} different values, {shown(values[0].item())} and others"
    return ""


def _wrong_mask(
    parts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], may_change: Collection[str]
) -> RowMismatch | None:
    """Compare the ones of a mask that the collator made with the lengths of the items."""
    name = next((name for name in MASKS if name in parts and name not in rows[0] and name not in may_change), None)
    mask = None if name is None else numbers(parts[name])
    if name is None or mask is None or mask.ndim != 2:
        return None
    sized = next((key for key in rows[0] if _fits(parts, rows[0], key, mask)), None)
    if sized is None:
        return None
    for row, item in enumerate(rows):
        length = len(item[sized])
        marked = int((mask[row] != 0).sum())
        if marked != length and mask.shape[1] - marked != length:  # True may mark what is padding
            return RowMismatch(name, row, f"marks {marked} positions, and the item's {sized!r} has {length}")
    return None


def _fits(parts: Mapping[str, Any], item: Mapping[str, Any], key: str, mask: Array) -> bool:
    """Whether a part of the batch has a position for each of the mask's."""
    column, value = numbers(parts.get(key)), numbers(item[key])
    return column is not None and value is not None and value.ndim > 0 and column.shape[:2] == mask.shape


def _one_to_one(found: Array) -> bool:
    """Whether each row can be given an item of its own."""
    chosen: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for item in np.flatnonzero(found[row]).tolist():
            if item not in tried:
                tried.add(item)
                if item not in chosen or place(chosen[item], tried):
                    chosen[item] = row
                    return True
        return False

    return all(place(row, set()) for row in range(len(found)))


def _named(value: Any) -> dict[str, Any]:
    if hasattr(value, "keys") and hasattr(value, "__getitem__") and not isinstance(value, Mapping):
        value = {key: value[key] for key in value.keys()}  # noqa: SIM118
    if isinstance(value, Mapping | tuple) or (isinstance(value, list) and numbers(value) is None):
        return flat(fields(value))
    return {"0": value}


def _renamed(item: dict[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Give the label of an item the name that the collators of transformers give it in a batch."""
    if "labels" not in parts or "labels" in item:
        return item
    return {"labels" if name in ("label", "label_ids") else name: value for name, value in item.items()}


def _numeric(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return not isinstance(rows[0][name], str | bytes) and numbers(rows[0][name]) is not None


def _columns(batch: Any, items: Sequence[Any]) -> dict[str, Any]:
    """Name the parts of a batch; a list with something for each item is one part."""
    count = len(items)
    if isinstance(batch, list) and len(batch) == count and isinstance(batch[0], type(items[0])):
        rows = [_named(row) for row in batch]
        return {name: [row.get(name) for row in rows] for name in rows[0]}
    if isinstance(batch, list | tuple) and not hasattr(batch, "_fields"):
        batch = {str(place): part for place, part in enumerate(batch)}
    if not isinstance(batch, Mapping):
        return _named(batch)
    found: dict[str, Any] = {}
    for name, part in batch.items():
        if isinstance(part, list | tuple) and len(part) == count:
            found[str(name)] = part
        else:
            found |= flat({str(name): part})
    return found


def _length(column: Any) -> int | None:
    shape = _shape(column)
    return shape[0] if shape else None


def _shape(column: Any) -> tuple[int, ...]:
    if isinstance(column, list | tuple):
        return (len(column),)
    return tuple(int(size) for size in getattr(column, "shape", ()))


def batches_of(loader: Any, count: int) -> list[Any]:
    """Copy the first batches of a loader.

    Raises:
        InvalidInput: it gives none.
    """
    if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
        raise InvalidInput(
            f"reproducible_order() got {what(loader)} from make_loader, which cannot be iterated. Let it return "
            "the loader."
        )
    try:
        found = [copy.deepcopy(batch) for batch in itertools.islice(iter(loader), count)]
    except Exception as error:
        raise InvalidInput(
            f"reproducible_order() read batches, and that raised {typed_message(error)}."
        ) from error
    if not found:
        raise InvalidInput("reproducible_order() read no batch: the loader is empty.")
    return found


def same_rows(first: list[Any], second: list[Any]) -> bool:
    """Whether two series of batches hold the same rows, in whatever order."""
    one, other = (_rows(batches) for batches in (first, second))
    return one is not None and one == other


def _rows(batches: list[Any]) -> Counter[bytes] | None:
    rows: Counter[bytes] = Counter()
    for batch in batches:
        arrays = [array for _, array in arrays_in(batch)]
        if not arrays or any(not array.ndim or len(array) != len(arrays[0]) for array in arrays):
            return None
        for row in range(len(arrays[0])):
            rows[hashlib.sha256(b"".join(array[row].tobytes() for array in arrays)).digest()] += 1
    return rows
