"""Finds scalers and encoders that are fitted a second time, on the rows of the evaluation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import (
    FUNCTIONS,
    Found,
    Function,
    Source,
    dotted,
    names_in,
    own_nodes,
    targets,
)

SCALERS = ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "QuantileTransformer")
ENCODERS = ("LabelEncoder", "OrdinalEncoder", "OneHotEncoder", "CountVectorizer", "TfidfVectorizer")
KINDS = (*SCALERS, *ENCODERS, "PowerTransformer")
"""Classes of scikit-learn whose results on two sides go together only if one was fitted for both."""
TRAINING = re.compile(r"(?:^|[_.])(?:train|training|tr|trn)(?:ing)?(?:[_.\d]|$)|train", re.IGNORECASE)
EVALUATION = re.compile(r"(?:^|[_./\d]|(?<=[xyX]))(?:test|val|valid|validation|eval|dev|holdout)(?:[_./\d]|$)")


def find(source: Source) -> Iterator[Found]:
    """Yield class, and what it is fitted on in training and in evaluation.

    Either the call ``fit_transform`` stands there twice, or in a function that both sides are handed to.
    """
    made = _made(source)
    fits = [
        (kind, node, scope)
        for scope in source.scopes
        for node in scope.nodes
        if isinstance(node, ast.Call) and (kind := _kind(node, made)) is not None
    ]
    kept = {
        id(node.value): node.targets[0]
        for node in source.nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    }
    for kind, call, scope in fits:
        if not _is_of_evaluation(call.args[0], kept.get(id(call))):
            continue
        for other_kind, other, _ in fits:
            is_earlier = other_kind == kind and other.lineno <= call.lineno
            if is_earlier and _is_of_training(other.args[0], kept.get(id(other))):
                yield Found((kind, _shown(other.args[0]), _shown(call.args[0])), call, scope.name)
                break
    for kind, call, scope in fits:
        if isinstance(scope.node, FUNCTIONS) and _fits_what_it_is_given(call, scope.node):
            yield from _handed_both(source, kind, call, scope.node)


def _made(source: Source) -> dict[str, str]:
    """Return by name the class of each scaler that the file makes; names of several classes are left out."""
    found: dict[str, set[str]] = {}
    for node in source.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for name in targets(node):
                found.setdefault(name, set()).add(dotted(node.value.func).rpartition(".")[2])
    return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1 and kinds <= set(KINDS)}


def _kind(call: ast.Call, made: dict[str, str]) -> str | None:
    """Return the class of the scaler whose `fit_transform` is called; None if this is no such call."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "fit_transform" or not call.args:
        return None
    owner = call.func.value
    if isinstance(owner, ast.Call):
        kind = dotted(owner.func).rpartition(".")[2]
        return kind if kind in KINDS else None
    return made.get(dotted(owner))


def _words(node: ast.AST) -> set[str]:
    strings = {
        inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    }
    return names_in(node) | strings


def _is_of_training(node: ast.AST, kept: ast.AST | None = None) -> bool:
    return _sides(node, kept) == (True, False)


def _is_of_evaluation(node: ast.AST, kept: ast.AST | None = None) -> bool:
    return _sides(node, kept) == (False, True)


def _sides(node: ast.AST, kept: ast.AST | None) -> tuple[bool, bool]:
    """Return whether data are called training and evaluation data; if neither, what their result is called."""
    words = _words(node)
    found = any(map(TRAINING.search, words)), any(map(EVALUATION.search, words))
    return found if any(found) or kept is None else _sides(kept, None)


def _fits_what_it_is_given(call: ast.Call, function: Function) -> bool:
    """Whether the scaler is made within the function, and the data do not come from elsewhere."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    made_here = isinstance(owner, ast.Call) or any(
        dotted(owner) in targets(node) for node in own_nodes(function) if isinstance(node, ast.Assign)
    )
    given = {argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]} - {"self"}
    derived = set(given)
    for node in own_nodes(function):
        if isinstance(node, ast.Assign) and names_in(node.value) & derived:
            derived |= set(targets(node))
    guarded = any(isinstance(node, ast.If | ast.IfExp) for node in own_nodes(function))  # `if train:`
    return made_here and not guarded and bool(names_in(call.args[0]) & derived)


def _handed_both(source: Source, kind: str, call: ast.Call, function: Function) -> Iterator[Found]:
    names = {function.name}
    if function.name == "__init__":
        names = {node.name for node in source.nodes if isinstance(node, ast.ClassDef) and function in node.body}
    handed = [one for one in source.calls if dotted(one.func).rpartition(".")[2] in names and one.args]
    training = [one for one in handed if _is_of_training(one.args[0])]
    evaluation = [one for one in handed if _is_of_evaluation(one.args[0])]
    if training and evaluation:
        shown = _shown(training[0].args[0]), _shown(evaluation[0].args[0])
        yield Found((kind, *shown), call, function.name)


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."
