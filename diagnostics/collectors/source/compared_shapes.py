"""Compares the shapes of arrays as a script left them: a mean that counts pairs, axes exchanged by a reshape."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from diagnostics.collectors.shared.arrays import to_array
from diagnostics.facts.array import Array
from diagnostics.facts.where import Where
from diagnostics.facts.written import ComparedPairs, ReshapedArray

from .scopes import FUNCTIONS, dotted

SAME_SHAPE = frozenset(
    {
        "array",
        "as_tensor",
        "asarray",
        "astype",
        "bool",
        "cast",
        "clone",
        "constant",
        "contiguous",
        "convert_to_tensor",
        "copy",
        "cpu",
        "detach",
        "double",
        "float",
        "from_numpy",
        "int",
        "long",
        "numpy",
        "tensor",
        "to",
        "type",
    }
)
"""Functions and methods that leave the shape and the whole numbers of their first argument."""
EQUAL = ("eq", "equal")
REDUCE = ("mean", "sum", "reduce_mean", "reduce_sum", "count_nonzero", "average")
ARRAYS = ("numpy", "torch", "tensorflow", "keras", "tf", "np", "ops", "K", "th", "tnp", "jnp")
LARGEST = 1_000_000  # numbers of an array
OWN_SCOPE = (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BRANCHES = (ast.Try, ast.Match, ast.IfExp, ast.BoolOp, ast.Assert)
ROWS = 8  # compared
MAX_ROW = 1_000_000  # numbers of a row
KINDS = 16  # least number of different values in the rows: zeros and ones would agree in many orders


def compared_pairs(tree: ast.Module, file: str, values: Mapping[str, Any]) -> Iterator[ComparedPairs]:
    """Yield the comparisons of which every pair is counted.

    Only those at the top level of the script, of names that nothing assigns further down: there, the values at the
    end are those that were compared last.

    Args:
        tree: the script.
        file: its name, as shown.
        values: its global names, when it has ended.
    """
    assigned: dict[str, int] = {}  # the last line of each
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            assigned[node.id] = max(assigned.get(node.id, 0), node.lineno)
    changed = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for reduced in _top_level(tree):
        for left, right in _comparison_in(reduced):
            sides = [_array(side, values) for side in (left, right)]
            names = {n.id for side in (left, right) for n in ast.walk(side) if isinstance(n, ast.Name)}
            stale = any(assigned.get(name, 0) >= reduced.lineno for name in names) or names & changed
            one, other = sides
            if stale or one is None or other is None:
                continue
            size = max(len(one), len(other))
            if {one.shape, other.shape} != {(size,), (size, 1)}:
                continue
            yield ComparedPairs(
                names=(ast.unparse(left), ast.unparse(right)),
                shapes=(one.shape, other.shape),
                of_pairs=_share_of_pairs(one.ravel(), other.ravel()),
                of_rows=float((one.ravel() == other.ravel()).mean()),
                kinds=min(len(np.unique(one)), len(np.unique(other))),
                where=Where(file, reduced.lineno, "<module>"),
            )


def _top_level(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that certainly ran in the scope of the module, and at the latest in the last pass."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*OWN_SCOPE, *BRANCHES)):
            continue
        if isinstance(child, ast.If) and not _is_regular(child.test):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _top_level(child)


def _is_regular(test: ast.expr) -> bool:
    """Whether a condition holds in every script, or every few steps."""
    return any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)) or dotted(node) == "__name__"
        for node in ast.walk(test)
    )


def _comparison_in(call: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the two sides of a comparison, all of whose results a call adds up or averages."""
    name = _last(call.func)
    if name not in REDUCE or any(word.arg in ("axis", "dim", "weights", "where") for word in call.keywords):
        return
    of_module = _is_of_module(call.func)
    if len(call.args) != of_module:
        return
    node = call.args[0] if of_module else call.func.value  # type: ignore[attr-defined]
    while isinstance(node, ast.Call) and _last(node.func) in SAME_SHAPE:
        inner = _first(node)
        if inner is None:
            return
        node = inner
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        yield node.left, node.comparators[0]
    elif isinstance(node, ast.Call) and _last(node.func) in EQUAL:
        if _is_of_module(node.func) and len(node.args) == 2:
            yield node.args[0], node.args[1]
        elif isinstance(node.func, ast.Attribute) and len(node.args) == 1:
            yield node.func.value, node.args[0]


def _array(node: ast.expr, values: Mapping[str, Any]) -> Array | None:
    """Return the numbers of a name, perhaps converted; None of anything else."""
    while isinstance(node, ast.Call) and _last(node.func) in SAME_SHAPE:
        inner = _first(node)
        if inner is None:
            return None
        node = inner
    value: Any = values.get(node.id) if isinstance(node, ast.Name) else None
    if not is_plain(value):
        return None
    if len(value.shape) not in (1, 2) or not 0 < int(np.prod(value.shape)) <= LARGEST:
        return None
    return to_array(value)


def is_plain(value: Any) -> bool:
    """Whether a value is an array of a library itself, the reading of which runs no code of the script."""
    torch, tensorflow = (sys.modules.get(name) for name in ("torch", "tensorflow"))
    if type(value) is np.ndarray or type(value) is getattr(torch, "Tensor", None):
        return True
    kind = getattr(tensorflow, "Tensor", None)
    return kind is not None and isinstance(value, kind) and hasattr(value, "numpy")


def _share_of_pairs(one: Array, other: Array) -> float:
    kinds, numbers = np.unique(one, return_counts=True)
    found, counts = np.unique(other, return_counts=True)
    _, of_one, of_other = np.intersect1d(kinds, found, return_indices=True)
    return float((numbers[of_one].astype(float) * counts[of_other]).sum() / (one.size * other.size))


def _first(call: ast.Call) -> ast.expr | None:
    """Return what a function converts, or a method is called on."""
    if _is_of_module(call.func):
        return call.args[0] if call.args else None
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _is_of_module(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and dotted(function.value).rpartition(".")[2] in ARRAYS


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ""


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
    if not 1 < np.prod(shape[1:]) <= MAX_ROW or not shape[0]:
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
