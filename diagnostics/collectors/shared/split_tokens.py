"""Takes tokens of the rows trained on and of the rows held out, to see whether both have the same ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.data import NO_TOKEN, TokenSides

from .arrays import to_array
from .pipeline import users_code
from .split_overlap import column_value, input_columns

MAX_ROWS, MAX_LENGTH = 2_048, 256  # rows of each side, evenly spread, and tokens of a row


def tokens_of_rows(training: Any, evaluation: Any, seconds: float, *, are_cut: bool = False) -> TokenSides | None:
    """Read rows of both sides by their index; None if they hold no tokens.

    Args:
        training: rows by index.
        evaluation: the same.
        seconds: to spend on reading either of them.
        are_cut: see `TokenSides`.
    """
    if not all(hasattr(data, "__getitem__") and hasattr(data, "__len__") for data in (training, evaluation)):
        return None
    with users_code():
        sizes = len(training), len(evaluation)
        if not all(sizes):
            return None
        columns = input_columns(training[0])
        sides = [_read(data, columns, seconds) for data in (training, evaluation)]
    both = {name: (sides[0][name], sides[1][name]) for name in columns if all(name in side for side in sides)}
    return TokenSides(both, *sizes, are_cut) if both else None


def tokens_of_arrays(inputs: Mapping[str, tuple[Array, Array]], *, are_cut: bool) -> TokenSides | None:
    """Take tokens of arrays, by name of both sides; None if none holds tokens."""
    tokens = {name: sides for name, sides in inputs.items() if all(map(_are_tokens, sides))}
    if not tokens:
        return None
    sizes = [len(side) for side in next(iter(tokens.values()))]
    bounded = {name: (_bounded(training), _bounded(held)) for name, (training, held) in tokens.items()}
    return TokenSides(bounded, sizes[0], sizes[1], are_cut)


def _are_tokens(array: Array) -> bool:
    return bool(array.dtype.kind in "iu" and array.ndim in (1, 2) and array.size)


def _bounded(array: Array) -> Array:
    rows = array[_spread(len(array))]
    return np.asarray(rows.reshape(len(rows), -1)[:, :MAX_LENGTH].astype(np.int64))


def _spread(size: int) -> Array:
    return np.unique(np.linspace(0, size - 1, min(MAX_ROWS, size)).astype(int))


def _read(data: Any, columns: Sequence[str], seconds: float) -> dict[str, Array]:
    """Return the tokens (rows, length) of the columns that hold some in each row, shorter ones filled up.

    The rows are read in another order than theirs: if time runs out, those read are spread evenly all the same.
    """
    rows: dict[str, list[Array]] = {name: [] for name in columns}
    started = time.monotonic()
    for index in np.random.default_rng(0).permutation(_spread(len(data))).tolist():
        row = data[index]
        for name in list(rows):
            value = column_value(row, name)
            array = None if value is None or isinstance(value, str) else to_array(value)
            if array is None or array.ndim > 1 or array.dtype.kind not in "iu" or not array.size:
                del rows[name]
            else:
                rows[name].append(array.reshape(-1)[:MAX_LENGTH])
        if not rows or time.monotonic() - started > seconds:
            break
    found = {}
    for name, parts in rows.items():
        found[name] = np.full((len(parts), max(map(len, parts))), NO_TOKEN, dtype=np.int64)
        for place, part in enumerate(parts):
            found[name][place, : len(part)] = part
    return found
