"""Finds an argmax over the only score of each example, which is 0 whatever the score."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import FUNCTIONS, Found, ModelAnswers, Scope, Source, dotted

OVER_LAST = (1, -1)  # axes of answers (examples, 1)
LIBRARIES = ("torch", "np", "numpy", "tf", "tensorflow", "tf.math", "jnp")


def find(source: Source) -> Iterator[Found]:
    """Yield the argument of each argmax over the last axis of what the model answers.

    Nothing where more than one name looks like a model's: which of them answered cannot be told.
    """
    model = ModelAnswers(source)
    if not model.is_one:
        return
    for scope in source.scopes:
        nodes = scope.nodes
        answers = {name for node in nodes for name in _assigned(node, scope, model)}
        for node in nodes:
            given = _given(_places(node), "max") if isinstance(node, ast.Assign) else _given(node, "argmax")
            if given is not None and model.are_in(given, answers):
                yield Found((ast.unparse(given),), given, scope.name, model.by_name)


def _assigned(node: ast.AST, scope: Scope, model: ModelAnswers) -> Iterator[str]:
    """Yield the name under which a statement keeps the scores."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return
    target = node.targets[0]
    if isinstance(target, ast.Tuple):
        given = [argument.arg for argument in scope.node.args.args] if isinstance(scope.node, FUNCTIONS) else []
        if "metric" in scope.name and dotted(node.value) in given[:1]:  # scores, labels = evaluation
            yield dotted(target.elts[0])
    elif model.are_in(node.value, frozenset()):
        yield dotted(target)


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
