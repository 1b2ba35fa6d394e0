"""Finds probabilities that a model answers and that are cast to integers, so that each below 1 becomes 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import Found, ModelAnswers, Source, dotted, targets

INTEGER = ("int", "np.int", "np.int8", "np.int16", "np.int32", "np.int64", "np.uint8")
AS_TEXT = ("int", "int8", "int16", "int32", "int64", "uint8")
METHODS = ("int", "long")  # of a tensor of PyTorch


def find(source: Source) -> Iterator[Found]:
    """Yield what is cast of each cast of a model's answers to integers.

    Only of a name that is assigned once, and none of whose elements is: a threshold may be set in place.
    Nothing where more than one name looks like a model's.
    """
    model = ModelAnswers(source)
    if not model.is_one:
        return
    for scope in source.scopes:
        nodes = scope.nodes
        answers = {name for name in _assigned(nodes, model) if name}
        for node in nodes:
            given = _cast(node)
            if given is not None and model.are_in(given, answers):
                yield Found((ast.unparse(given),), given, scope.name, model.by_name)


def _assigned(nodes: list[ast.AST], model: ModelAnswers) -> Iterator[str]:
    """Yield the names that hold what the model answers and nothing else."""
    once: dict[str, int] = {}
    for node in nodes:
        for name in targets(node):
            once[name] = once.get(name, 0) + 1
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            name = dotted(node.value)
            once[name] = once.get(name, 0) + 2
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and model.are_in(node.value, frozenset()):
            name = dotted(node.targets[0])
            if once.get(name) == 1 or (once.get(name) == 2 and _casts_itself(nodes, name)):
                yield name


def _casts_itself(nodes: list[ast.AST], name: str) -> bool:
    """Whether the second assignment to a name is the cast: ``p = p.astype(int)``."""
    assigned = (node for node in nodes if isinstance(node, ast.Assign) and list(targets(node)) == [name])
    return any((given := _cast(node.value)) is not None and dotted(given) == name for node in assigned)


def _cast(node: ast.AST | None) -> ast.expr | None:
    """Return what a call casts to integers; None if it is no such call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    if name in METHODS and not node.args and not node.keywords:
        return node.func.value
    if name == "astype" and node.args and _is_integer(node.args[0]):
        return node.func.value
    if dotted(node.func) == "tf.cast" and len(node.args) == 2 and _is_integer(node.args[1]):
        return node.args[0]
    return None


def _is_integer(kind: ast.expr) -> bool:
    if isinstance(kind, ast.Constant):
        return kind.value in AS_TEXT
    return dotted(kind).replace("numpy.", "np.").replace("tf.", "np.") in INTEGER
