"""Names in the source of a Python module: where they are read and assigned."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = (ast.For, ast.AsyncFor, ast.While)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MODEL = re.compile(  # and no `model_path`
    r"(?:^|_)(?:model|net|network|classifier|regressor|encoder|decoder|policy|agent|learner)_?\d*$", re.IGNORECASE
)


def dotted(node: ast.AST | None) -> str:
    """Return a name or a chain of attributes, ``self.model``; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def scopes(tree: ast.Module) -> Iterator[ast.Module | Function]:
    """Yield the module and each function in it."""
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def scope_name(scope: ast.Module | Function) -> str:
    """Return the name of a function; ``<module>`` for a module."""
    return "<module>" if isinstance(scope, ast.Module) else scope.name


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope in the order of the source, without those of functions and classes within."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            yield from own_nodes(child)


def targets(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement assigns."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.AsyncFor):
        found = [node.target]
    elif isinstance(node, ast.With | ast.AsyncWith):
        found = [item.optional_vars for item in node.items if item.optional_vars is not None]
    for target in found:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        yield from (name for part in parts if (name := dotted(part)))


def is_read(node: ast.AST, name: str) -> bool:
    """Whether a node reads a name."""
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and dotted(node) == name


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls within a node."""
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))


def names_in(node: ast.AST) -> set[str]:
    """Return the names, and the chains of attributes, within a node."""
    return {dotted(inner) for inner in ast.walk(node) if isinstance(inner, ast.Name | ast.Attribute)}
