"""Finds arrays that hold another array's numbers in the same order but with two axes exchanged in their shape."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from diagnostics.collectors.shared.arrays import to_array
from diagnostics.facts.array import Array
from diagnostics.facts.where import Where
from diagnostics.facts.written import ReshapedArray

from .compared_shapes import is_plain

ROWS = 8  # compared
LARGEST = 1_000_000  # numbers of a row
KINDS = 16  # least number of different values in the rows: zeros and ones would agree in many orders


def reshaped_arrays(tree: ast.Module, file: str, values: Mapping[str, Any]) -> Iterator[ReshapedArray]:
    """Yield the arrays of which another one is a view or a copy of this kind.

    Args:
        tree: the script.
        file: its name, as shown.
        values: its global names, when it has ended.
    """
    lines: dict[str, int] = {}  # of the last assignment to each
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            lines[node.id] = max(lines.get(node.id, 0), node.lineno)
    arrays = {
        name: value for name, value in values.items() if name in lines and is_plain(value) and len(value.shape) > 2
    }
    for before, after in itertools.permutations(sorted(arrays, key=lambda name: lines[name]), 2):
        if lines[before] <= lines[after] and _are_reshaped(arrays[before], arrays[after]):
            yield ReshapedArray(
                names=(before, after),
                shapes=(tuple(arrays[before].shape), tuple(arrays[after].shape)),
                where=Where(file, lines[after], "<module>"),
            )


def _are_reshaped(before: Any, after: Any) -> bool:
    shape, made = tuple(before.shape), tuple(after.shape)
    if shape[0] != made[0] or shape == made or sorted(shape) != sorted(made):
        return False
    if not 1 < np.prod(shape[1:]) <= LARGEST or not shape[0]:
        return False
    if tuple(size for size in shape if size > 1) == tuple(size for size in made if size > 1):
        return False  # only axes of length 1 have moved
    chosen = np.linspace(0, shape[0] - 1, min(ROWS, shape[0])).astype(int)
    ours, theirs = (np.stack([_row(array, int(row)) for row in chosen]) for array in (before, after))
    return bool(np.array_equal(ours, theirs)) and len(np.unique(ours)) >= KINDS


def _row(array: Any, row: int) -> Array:
    """Return the numbers of a row in their order, float32 (n,)."""
    found = to_array(array[row])
    assert found is not None
    return np.asarray(found, np.float32).ravel()
