"""Hashes rows, weights and the state of random generators, a bounded part of each. No framework."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from diagnostics.facts.array import Array

ROWS: Final = 32
"""Rows of a batch that are hashed, the first ones."""

NUMBERS: Final = 64
"""Numbers of a row or of a parameter that are hashed."""

PARAMETERS: Final = 128
"""Parameters with a hash of their own."""

LAYERS: Final = 128
"""Layers whose settings are recorded, the first ones."""

OTHERS: Final = "the other parameters"


def part_of_rows(rows: Any, integers: bool) -> Any:
    """Return the numbers (rows, k) of a batch to hash, of an array or a tensor: k is at most `NUMBERS`.

    Of integers they are the first ones: where these are tokens, the length of a row depends on those beside it.
    """
    flat = rows[:ROWS].reshape(min(len(rows), ROWS), -1)
    return flat[:, :NUMBERS] if integers else flat[:, :: max(1, -(-flat.shape[1] // NUMBERS))]


def part_of_weights(values: Any) -> Any:
    """Return the numbers (k,) of a parameter to hash, spread evenly, of an array or a tensor."""
    flat = values.reshape(-1)
    return flat[:: max(1, -(-len(flat) // NUMBERS))]


def hashes_of_rows(parts: Sequence[Array]) -> tuple[str, ...]:
    """Return 32 bits for each row, equal for equal rows; empty without arrays.

    Args:
        parts: of the inputs, from `part_of_rows`; those with another number of rows than the first are left out,
            and masks of 0 and 1 beside other inputs, which depend on the longest row of the batch.
    """
    same = [part for part in parts if len(part) == len(parts[0])]
    same = [part for part in same if not _is_mask(part)] or same
    return tuple(_hash(*(_unpadded(part[row]) for part in same)) for row in range(len(same[0]) if same else 0))


def hashes_of_weights(parts: Mapping[str, Array]) -> dict[str, str]:
    """Return 32 bits for each parameter, and one hash for those beyond `PARAMETERS`.

    Args:
        parts: by name, from `part_of_weights`.
    """
    each = {name: _hash(part) for name, part in parts.items()}
    names = list(each)
    if beyond := names[PARAMETERS:]:
        rest = "".join(each[name] for name in beyond)
        return {name: each[name] for name in names[:PARAMETERS]} | {OTHERS: _hash(rest.encode())}
    return each


def states_of_host() -> dict[str, str]:
    """Return hashes of the states of Python's and NumPy's global generators."""
    kind, key, *place = np.random.get_state(legacy=True)
    return {
        "random": _hash(repr(random.getstate()).encode()),
        "numpy.random": _hash(f"{kind} {place}".encode(), np.asarray(key)),
    }


def plain_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are numbers, strings or None, or sequences of them."""
    plain = {name: _plain(value) for name, value in values.items()}
    return {name: value for name, value in plain.items() if value is not ...}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        parts = [_plain(part) for part in value]
        return ... if ... in parts else str(tuple(parts))
    return ...


def _is_mask(part: Array) -> bool:
    return part.dtype.kind in "iub" and bool(((part == 0) | (part == 1)).all())


def _unpadded(row: Array) -> Array:
    """Return a row of integers without the padding at its end."""
    if row.dtype.kind not in "iu" or len(row) < 2:
        return row
    others = np.flatnonzero(row != row[-1])
    return row[: others[-1] + 2] if len(others) else row[:1]


def _hash(*parts: Array | bytes) -> str:
    digest = hashlib.blake2b(digest_size=4)
    for part in parts:
        digest.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
        digest.update(b"|")
    return digest.hexdigest()
