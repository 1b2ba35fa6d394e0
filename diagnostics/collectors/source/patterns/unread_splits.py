"""Finds data that is held out and never used, while the evaluation reads the training data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

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
    not over what it was given.
    """

    def unread(name: str) -> bool:
        return not any(_mentions(other, name) for other in source.nodes)

    for scope in source.scopes:
        nodes = scope.nodes
        made = [node for node in nodes if isinstance(node, ast.Assign)]
        held = [name for name in dict.fromkeys(n for one in made for n in _data(one)) if unread(name)]
        for node in made:
            parts = parts_of_split(node)
            if len(parts) == 2 and parts[1] in held and not EVALUATION.search(parts[0]):
                yield from _loaders(made, parts[1], parts[0], scope.name)
        of_loaders = {name for node in made if _is_loader(node) for name in targets(node)}
        for name in held:
            if name not in of_loaders and not any(name in parts_of_split(node) for node in made):
                for training in dict.fromkeys(filter(_is_training, _loaded(made))):
                    yield from _loaders(made, name, training, scope.name)
            for node in made:
                if training := _evaluated(node):
                    yield Found((name, training, next(iter(targets(node))), "computed"), node, scope.name)
        if isinstance(scope.node, FUNCTIONS):
            yield from _ignored_argument(scope.node)


def parts_of_split(node: ast.AST) -> list[str]:
    """Return the names of the parts that a statement keeps of a split; empty if it makes none."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) != 1:
        return []
    target = node.targets[0]
    if dotted(node.value.func).rpartition(".")[2] not in SPLITS or not isinstance(target, ast.Tuple):
        return []
    return [dotted(part) for part in target.elts]


def _data(node: ast.Assign) -> Iterator[str]:
    """Yield the names that a statement gives to data that is held out."""
    if not isinstance(node.value, ast.Call):
        return
    of_split = parts_of_split(node)
    for part in (part for target in node.targets for part in ast.walk(target)):
        name = dotted(part)
        if EVALUATION.search(name) and not name.startswith("_") and (name in of_split or DATA.search(name)):
            yield name


def _loaders(made: list[ast.Assign], held: str, training: str, function: str) -> Iterator[Found]:
    """Yield a loader named for evaluation over the training data, if there is another one over it."""
    loaders = [(name, node) for node in made if (name := _loader_over(node, training))]
    if len(loaders) > 1:
        for name, node in loaders:
            if EVALUATION.search(name) and not TRAINING.search(name):
                yield Found((held, training, name, "made"), node, function)


def _loaded(made: list[ast.Assign]) -> Iterator[str]:
    """Yield what loaders are made of."""
    yield from (dotted(_given(node.value)) for node in made if _is_loader(node))


def _is_loader(node: ast.Assign) -> bool:
    return isinstance(node.value, ast.Call) and dotted(node.value.func).rpartition(".")[2] in LOADERS


def _is_training(name: str) -> bool:
    return bool(TRAINING.search(name)) and not EVALUATION.search(name)


def _evaluated(node: ast.Assign) -> str:
    """Return the training data that a function evaluates a model on, if the result is named for new rows."""
    named = list(targets(node))
    if not isinstance(node.value, ast.Call) or not named or not all(_is_of_new_rows(name) for name in named):
        return ""
    function = dotted(node.value.func).rpartition(".")[2]
    given = [dotted(argument) for argument in (*node.value.args, *(k.value for k in node.value.keywords))]
    data = [name for name in given if DATA.search(name)]
    on_training = EVALUATES.search(function) and data and all(map(_is_training, data))
    return data[0] if on_training else ""


def _is_of_new_rows(name: str) -> bool:
    return bool(NEW_ROWS.search(name)) and not TRAINING.search(name)


def _ignored_argument(function: Function) -> Iterator[Found]:
    """Yield the data that a function of evaluation is given and ignores, as it goes through training data."""
    if not EVALUATES.search(function.name) or TRAINING.search(function.name):
        return
    given = [argument.arg for argument in function.args.args]
    inside = [node for statement in function.body for node in ast.walk(statement)]
    ignored = [name for name in given if _is_of_new_rows(name) and DATA.search(name)]
    ignored = [name for name in ignored if not any(_mentions(node, name) for node in inside)]
    for loop in inside:
        if ignored and isinstance(loop, ast.For) and not _fits(loop):
            for read in sorted(names_in(loop.iter)):
                if _is_training(read) and DATA.search(read) and read not in given:
                    yield Found((ignored[0], read, function.name, "iterated"), loop, function.name)


def _fits(loop: ast.For) -> bool:
    """Whether a loop trains."""
    return any(isinstance(call.func, ast.Attribute) and call.func.attr in TRAINS for call in calls(loop))


def _mentions(node: ast.AST, name: str) -> bool:
    """Whether a node reads a name, or names it in a string, as of `locals()`, or an attribute of an object."""
    if isinstance(node, ast.Name | ast.Attribute):
        return isinstance(node.ctx, ast.Load) and dotted(node) in (name, f"self.{name}")
    return isinstance(node, ast.Constant) and node.value == name


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
