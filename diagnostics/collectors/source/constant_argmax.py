"""Finds an argmax over the only score of each example, which is 0 whatever the score."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .scopes import FUNCTIONS, MODEL, Function, calls, dotted, own_nodes, scope_name, scopes

OVER_LAST = (1, -1)  # axes of answers (examples, 1)
CALLS = (".predict", ".predict_on_batch", ".forward")  # of a model
LIBRARIES = ("torch", "np", "numpy", "tf", "tensorflow", "tf.math", "jnp")
KEEP_SHAPE = ("detach", "cpu", "numpy", "float", "clone", "softmax", "log_softmax", "sigmoid", "exp")
HELD = ("logits", "predictions")  # attributes of what a model of transformers, or its evaluation, returns


def argmaxes_of_answers(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Yield the argument, line and function of each argmax over the last axis of what the model answers.

    Nothing where more than one name looks like a model's: which of them answered cannot be told.
    """
    if len({name for call in calls(tree) if (name := _model(call))}) > 1:
        return
    for scope in scopes(tree):
        nodes = list(own_nodes(scope))
        answers = {name for node in nodes for name in _assigned(node, scope)}
        for node in nodes:
            given = _given(_places(node), "max") if isinstance(node, ast.Assign) else _given(node, "argmax")
            if given is not None and _answers(given, answers):
                yield ast.unparse(given), given.lineno, scope_name(scope)


def _model(call: ast.Call) -> str:
    """Return the name of the model that a call asks; empty if it asks none."""
    name = dotted(call.func)
    for ending in CALLS:
        name = name.removesuffix(ending)
    last = name.rpartition(".")[2]
    return name if MODEL.search(last) and not last[0].isupper() else ""  # a class is called to make one


def _assigned(node: ast.AST, scope: ast.Module | Function) -> Iterator[str]:
    """Yield the name under which a statement keeps the scores."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return
    target = node.targets[0]
    if isinstance(target, ast.Tuple):
        given = [argument.arg for argument in scope.args.args] if isinstance(scope, FUNCTIONS) else []
        if "metric" in scope_name(scope) and dotted(node.value) in given[:1]:  # scores, labels = evaluation
            yield dotted(target.elts[0])
    elif _answers(node.value, frozenset()):
        yield dotted(target)


def _answers(node: ast.expr, names: set[str] | frozenset[str]) -> bool:
    """Whether an expression is what the model answers, in the shape in which it does."""
    if isinstance(node, ast.Call):
        if _model(node):
            return True
        name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
        if name not in KEEP_SHAPE:
            return False
        inner = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
        return inner is not None and _answers(inner, names)
    if isinstance(node, ast.Attribute) and (node.attr in HELD or node.attr == "data"):
        return node.attr in HELD or _answers(node.value, names)
    return bool(name := dotted(node)) and name in names


def _places(node: ast.Assign) -> ast.expr | None:
    """Return what is assigned to two names, the second of which is kept: values and their places."""
    target = node.targets[0]
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or dotted(target.elts[1]) in ("", "_"):
        return None
    return node.value


def _given(call: ast.AST | None, function: str) -> ast.expr | None:
    """Return what a function takes over the last of two axes; None if this is no call of it that does."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != function:
        return None
    given = [*call.args] if dotted(call.func.value) in LIBRARIES else [call.func.value, *call.args]
    axes = [*given[1:2], *(word.value for word in call.keywords if word.arg in ("dim", "axis"))]
    if not given or len(axes) != 1:
        return None
    try:
        axis = ast.literal_eval(axes[0])
    except ValueError:
        return None
    return given[0] if axis in OVER_LAST else None
