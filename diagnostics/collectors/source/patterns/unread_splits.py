"""Finds data that is held out and never used, while the evaluation reads the training data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from diagnostics.collectors.source.scopes import (
    FUNCTIONS,
    Found,
    Function,
    Source,
    calls,
    dotted,
    names_in,
    targets,
)

SPLITS = ("random_split", "train_test_split")
LOADERS = ("DataLoader",)
EVALUATION = re.compile(
    r"(?:^|_|\.)(?:val|valid|validation|test|dev|eval|evaluation|holdout)(?:_|\d|$)", re.IGNORECASE
)
NEW_ROWS = re.compile(r"(?:^|_|\.)(?:val|valid|validation|test|holdout)(?:_|\d|$)", re.IGNORECASE)
"""What names rows that are not trained on; an `eval_loss` may be one of the training rows."""
TRAINING = re.compile(r"(?:^|_|\.)(?:train|training|trn|fit)(?:_|\d|$)|train_eval|eval_train", re.IGNORECASE)
DATA = re.compile(r"(?:loader|dataset|set|data|ds|dl|gen|generator)\d*$|^x_", re.IGNORECASE)
EVALUATES = re.compile(r"(?:^|_)(?:evaluate|eval|validate|valid|val|test|score)", re.IGNORECASE)

TRAINS = ("backward", "step")


def find(source: Source) -> Iterator[Found]:
    """Yield the data that is never read, what is read instead, by what, and how.

    That is a loader ``made`` of it, a result ``computed`` of it, or a function that has ``iterated`` over it, and
    not over what it was given. Names may tell which data is held out, and so may the statements: the two parts of
    one split, two data sets of one class, and which of them the training goes through.
    """
    trained, read = set(_trained(source)), set(_mentioned(source.nodes))
    for scope in source.scopes:
        made = [node for node in scope.nodes if isinstance(node, ast.Assign)]
        held = dict.fromkeys(name for one in made for name in _data(one))
        evaluated = set[ast.Assign]()
        for name in (one for one in held if one not in read and f"self.{one}" not in read):
            for training in dict.fromkeys(filter(None, _loaded(made))):
                if _are_sides(made, name, training) and not EVALUATION.search(training):
                    yield from _loaders(made, name, training, scope.name, True)
                elif _is_held_by_name(made, name) and _is_training(training):
                    yield from _loaders(made, name, training, scope.name, False)
            for node in (one for one in made if one not in evaluated):
                training, by_name = _evaluated(node, name, made, trained)
                if training and (not by_name or _is_named_data(made, name)):
                    computed = (name, training, next(iter(targets(node))), "computed")
                    yield Found(computed, node, scope.name, by_name)
                    evaluated.add(node)
        if isinstance(scope.node, FUNCTIONS):
            yield from _ignored_argument(source, scope.node, trained)


def parts_of_split(node: ast.AST) -> list[str]:
    """Return the names of the parts that a statement keeps of a split; empty if it makes none."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) != 1:
        return []
    target = node.targets[0]
    if dotted(node.value.func).rpartition(".")[2] not in SPLITS or not isinstance(target, ast.Tuple):
        return []
    return [dotted(part) for part in target.elts]


def _trained(source: Source) -> Iterator[str]:
    """Yield what loops with a training step go through, and what `fit` is given."""
    for node in source.nodes:
        if isinstance(node, ast.For) and _fits(node):
            yield from names_in(node.iter)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
            yield from (name for argument in node.args if (name := dotted(argument)))


def _data(node: ast.Assign) -> Iterator[str]:
    """Yield the names that a statement gives to what a call returns, or to its parts."""
    if isinstance(node.value, ast.Call):
        names = (dotted(part) for target in node.targets for part in ast.walk(target))
        yield from (name for name in names if name and not name.startswith("_"))


def _is_named_data(made: list[ast.Assign], name: str) -> bool:
    """Return whether a name suggests held-out data."""
    of_split = any(name in parts_of_split(node) for node in made)
    return bool(EVALUATION.search(name)) and (of_split or bool(DATA.search(name)))


def _is_held_by_name(made: list[ast.Assign], name: str) -> bool:
    """Return whether a name suggests a held-out data set that does not come from a split."""
    others = ((name in targets(node) and _is_loader(node)) or name in parts_of_split(node) for node in made)
    return _is_named_data(made, name) and not any(others)


def _are_sides(made: list[ast.Assign], one: str, other: str) -> bool:
    """Whether two names are parts of one split, or of what one call returns, or are made by the same class."""
    makers: dict[str, set[str]] = {one: set(), other: set()}
    for node in made:
        names = set(_data(node))
        if {one, other} <= names:
            parts = [part for target in node.targets for part in ast.iter_child_nodes(target)]
            is_nested = any(isinstance(part, ast.Tuple) for part in parts)  # (x, y), (x_test, y_test) = …
            return is_nested or {one, other} <= set(parts_of_split(node))
        for name in names & {one, other}:
            if isinstance(node.value, ast.Call) and name in targets(node):
                makers[name].add(dotted(node.value.func).rpartition(".")[2])
    return makers[one] == makers[other] and len(makers[one]) == 1 and min(makers[one])[:1].isupper()


def _loaders(made: list[ast.Assign], held: str, training: str, function: str, are_sides: bool) -> Iterator[Found]:
    """Yield a loader for evaluation over the training data, if there is another one over it.

    It is the one of them that does not shuffle, or else the one with a name for evaluation.
    """
    loaders = [(name, node) for node in made if (name := _loader_over(node, training))]
    shuffled = [name for name, node in loaders if _shuffles(node)]
    for name, node in loaders if len(loaders) > 1 else ():
        is_certain = are_sides and bool(shuffled) and name not in shuffled
        if not TRAINING.search(name) and (is_certain or EVALUATION.search(name)):
            yield Found((held, training, name, "made"), node, function, not is_certain)


def _shuffles(node: ast.Assign) -> bool:
    words = node.value.keywords if isinstance(node.value, ast.Call) else []
    return any(w.arg == "shuffle" and isinstance(w.value, ast.Constant) and w.value.value is True for w in words)


def _loaded(made: list[ast.Assign]) -> Iterator[str]:
    """Yield what loaders are made of."""
    yield from (dotted(_given(node.value)) for node in made if _is_loader(node))


def _is_loader(node: ast.Assign) -> bool:
    return isinstance(node.value, ast.Call) and dotted(node.value.func).rpartition(".")[2] in LOADERS


def _is_training(name: str) -> bool:
    return bool(TRAINING.search(name)) and not EVALUATION.search(name)


def _evaluated(node: ast.Assign, held: str, made: list[ast.Assign], trained: set[str]) -> tuple[str, bool]:
    """Return the training data that a function evaluates a model on, and whether only names say so; else ''."""
    named = list(targets(node))
    if not isinstance(node.value, ast.Call) or not named:
        return "", False
    if not EVALUATES.search(dotted(node.value.func).rpartition(".")[2]):
        return "", False
    given = [dotted(argument) for argument in (*node.value.args, *(k.value for k in node.value.keywords))]
    neutral = not any(EVALUATION.search(name) or TRAINING.search(name) for name in named)
    if neutral or all(map(_is_of_new_rows, named)):
        for name in given:
            if name in trained and _are_sides(made, held, name) and not EVALUATION.search(name):
                return name, False
    data = [name for name in given if DATA.search(name)]
    is_of_training = data and all(map(_is_training, data)) and all(map(_is_of_new_rows, named))
    return (data[0], True) if is_of_training else ("", False)


def _is_of_new_rows(name: str) -> bool:
    return bool(NEW_ROWS.search(name)) and not TRAINING.search(name)


def _ignored_argument(source: Source, function: Function, trained: set[str]) -> Iterator[Found]:
    """Yield the data that a function of evaluation is given and ignores, as it goes through training data."""
    if not EVALUATES.search(function.name) or TRAINING.search(function.name):
        return
    given = [argument.arg for argument in function.args.args]
    inside = [node for statement in function.body for node in ast.walk(statement)]
    read = set(_mentioned(inside))
    ignored = [name for name in given if name != "self" and not {name, f"self.{name}"} & read]
    handed = _handed(source, function, given)
    named = next((name for name in ignored if _is_of_new_rows(name) and DATA.search(name)), "")
    for loop in inside:
        if ignored and isinstance(loop, ast.For) and not _fits(loop):
            for over in sorted(names_in(loop.iter) - set(given)):
                certain = next((one for one in ignored if over in trained and handed.get(one, over) != over), "")
                if certain or (named and _is_training(over) and DATA.search(over)):
                    names = (certain or named, over, function.name, "iterated")
                    yield Found(names, loop, function.name, not certain)


def _handed(source: Source, function: Function, given: list[str]) -> dict[str, str]:
    """Return the loaders that calls of a function hand to it, by its arguments."""
    loaders = {name for node in source.assigned if _is_loader(node) for name in targets(node)}
    found: dict[str, str] = {}
    for call in source.calls:
        if dotted(call.func) == function.name:
            by_name = [(word.arg, word.value) for word in call.keywords if word.arg]
            pairs = [*zip(given, call.args, strict=False), *by_name]
            found |= {name: dotted(value) for name, value in pairs if dotted(value) in loaders}
    return found


def _fits(loop: ast.For) -> bool:
    """Whether a loop trains."""
    return any(isinstance(call.func, ast.Attribute) and call.func.attr in TRAINS for call in calls(loop))


def _mentioned(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield what nodes read, and what they name in a string, as of `locals()` or an attribute of an object."""
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield dotted(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _loader_over(node: ast.Assign, dataset: str) -> str:
    """Return the name under which a statement keeps a loader over a dataset; empty if it makes none."""
    if not _is_loader(node) or len(node.targets) != 1 or dotted(_given(node.value)) != dataset:
        return ""
    return dotted(node.targets[0])


def _given(loader: ast.expr) -> ast.expr | None:
    """Return the dataset that a loader is made of."""
    if not isinstance(loader, ast.Call):
        return None
    return loader.args[0] if loader.args else next((k.value for k in loader.keywords if k.arg == "dataset"), None)
