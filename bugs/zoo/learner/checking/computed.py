"""Finds numbers that a script prints and does not compute."""

from __future__ import annotations

import ast
import re
from collections import Counter

_LABEL = re.compile(r"(\w+)=$")  # in front of a printed value, as in f"accuracy={accuracy:.3f}"


def written_in(text: str, original: str) -> tuple[str, int] | None:
    """Return a metric of the original that a learner's script holds as a constant, and the line; None if none.

    Args:
        text: the learner's script.
        original: the script that it was made from.
    """
    ours, tree = ast.parse(original), ast.parse(text)
    given = _constants(ours)
    metrics = {name for name, value, _ in _printed(ours) if not _is_constant(value, given)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_docstring(node, tree):
            for name in metrics:
                if re.search(rf"\b{name}=-?\.?\d", node.value):
                    return name, node.lineno
    constants = _constants(tree)
    for name, value, line in _printed(tree):
        if name in metrics and _is_constant(value, constants):
            return name, line
    return None


def _printed(tree: ast.Module) -> list[tuple[str, ast.expr, int]]:
    """Return the values in a script's f-strings that follow `name=`, each with that name and its line."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for label, value in zip(node.values, node.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(label, ast.Constant):
                match = _LABEL.search(str(label.value))
                if match is not None:
                    found.append((match[1], value.value, node.lineno))
    return found


def _constants(tree: ast.Module) -> set[str]:
    """Return the names that never hold anything but constants, or combinations of them."""
    bound, assigned = Counter[str](), list[tuple[str, ast.expr]]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
        elif isinstance(node, ast.arg):
            bound[node.arg] += 1
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned.append((node.targets[0].id, node.value))
    constants = set[str]()
    while True:  # a name may be assigned from another
        held = Counter(name for name, value in assigned if _is_constant(value, constants))
        more = {name for name, count in held.items() if count == bound[name]} - constants
        if not more:
            return constants
        constants |= more


def _is_constant(value: ast.expr, constants: set[str]) -> bool:
    """Return whether a value is made of constants alone; a list or what a call returns may change later."""
    if isinstance(value, ast.Name):
        return value.id in constants
    if isinstance(value, ast.UnaryOp):
        return _is_constant(value.operand, constants)
    if isinstance(value, ast.BinOp):
        return _is_constant(value.left, constants) and _is_constant(value.right, constants)
    return isinstance(value, ast.Constant)


def _is_docstring(node: ast.Constant, tree: ast.Module) -> bool:
    return any(isinstance(each, ast.Expr) and each.value is node for each in ast.walk(tree))
