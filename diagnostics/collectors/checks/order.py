"""Reads batches, and says whether two series of them hold the same rows."""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections import Counter
from typing import Any

from diagnostics.errors import InvalidInput, typed_message, what

from .items import arrays_in


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
