"""Finds scalers and encoders that are fitted a second time, on the rows of the evaluation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

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

from .unread_splits import parts_of_split

SCALERS = ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "QuantileTransformer")
ENCODERS = ("LabelEncoder", "OrdinalEncoder", "OneHotEncoder", "CountVectorizer", "TfidfVectorizer")
KINDS = (*SCALERS, *ENCODERS, "PowerTransformer")
"""Classes of scikit-learn whose results on two sides go together only if one was fitted for both."""
TRAINING = re.compile(r"(?:^|[_.])(?:train|training|tr|trn)(?:ing)?(?:[_.\d]|$)|train", re.IGNORECASE)
EVALUATION = re.compile(r"(?:^|[_./\d]|(?<=[xyX]))(?:test|val|valid|validation|eval|dev|holdout)(?:[_./\d]|$)")


def find(source: Source) -> Iterator[Found]:
    """Yield class, and what it is fitted on in training and in evaluation.

    ``fit_transform`` is called twice, or in a function that gets the training and the evaluation data.
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
    sides = _split_sides(source)
    for kind, call, scope in fits:
        of_evaluation = _side(call.args[0], kept.get(id(call)), sides)
        if of_evaluation is None or of_evaluation.is_training:
            continue
        for other_kind, other, _ in fits:
            is_earlier = other_kind == kind and other.lineno <= call.lineno
            of_training = _side(other.args[0], kept.get(id(other)), sides) if is_earlier else None
            if of_training is not None and of_training.is_training:
                by_name = of_training.by_name or of_evaluation.by_name
                yield Found((kind, _shown(other.args[0]), _shown(call.args[0])), call, scope.name, by_name)
                break
    for kind, call, scope in fits:
        if isinstance(scope.node, FUNCTIONS) and _fits_what_it_is_given(call, scope.node):
            yield from _handed_both(source, kind, call, scope.node, sides)


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


class _Side(NamedTuple):
    """Whether data are those of the training, and whether only a name says so."""

    is_training: bool
    by_name: bool


def _side(node: ast.expr, kept: ast.AST | None, sides: Mapping[str, bool]) -> _Side | None:
    """Return the side of data by their names, or by that of their result, or by how they were split."""
    found = {sides[name] for name in (*names_in(node), ast.unparse(node)) if name in sides}
    split = found.pop() if len(found) == 1 else None
    for named in (node, kept):
        words = set() if named is None else _words(named)
        training, evaluation = any(map(TRAINING.search, words)), any(map(EVALUATION.search, words))
        if training != evaluation:
            return _Side(training, split is not training)
        if training:
            return None
    return None if split is None else _Side(split, False)


def _split_sides(source: Source) -> dict[str, bool]:
    """Return whether data are the first part of a split, for names and for slices as they are written.

    The second of two parts is that of the evaluation, as are the rows of ``series[900:]`` beside ``series[:900]``.
    """
    sides: dict[str, bool] = {}
    slices = {ast.unparse(part): part for part in source.nodes if isinstance(part, ast.Subscript)}
    for written, part in slices.items():
        if isinstance(part.slice, ast.Slice) and part.slice.lower is None and part.slice.upper is not None:
            rest = f"{ast.unparse(part.value)}[{ast.unparse(part.slice.upper)}:]"
            if rest in slices:
                sides |= {written: True, rest: False}
    for node in source.assigned:
        for place, name in enumerate(parts_of_split(node)):
            sides[name] = place % 2 == 0
        if len(list(targets(node))) == 1 and (written := ast.unparse(node.value)) in sides:
            sides[next(targets(node))] = sides[written]
    return sides


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


def _handed_both(
    source: Source, kind: str, call: ast.Call, function: Function, sides: Mapping[str, bool]
) -> Iterator[Found]:
    names = {function.name}
    if function.name == "__init__":
        names = {node.name for node in source.nodes if isinstance(node, ast.ClassDef) and function in node.body}
    handed = [one for one in source.calls if dotted(one.func).rpartition(".")[2] in names and one.args]
    found = [(one.args[0], side) for one in handed if (side := _side(one.args[0], None, sides)) is not None]
    training = [one for one in found if one[1].is_training]
    evaluation = [one for one in found if not one[1].is_training]
    if training and evaluation:
        (trained, of_trained), (tested, of_tested) = training[0], evaluation[0]
        by_name = of_trained.by_name or of_tested.by_name
        yield Found((kind, _shown(trained), _shown(tested)), call, function.name, by_name)


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."
