"""Finds a loop over epochs that re-creates its model in each of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .scopes import FUNCTIONS, LOOPS, Loop, calls, dotted, names_in, own_nodes, scope_name, scopes, targets

EPOCH = re.compile(r"(?:^|_)(?:ep|epochs?)_?\d*$", re.IGNORECASE)
MAKERS = ("Sequential", "Model", "clone_model")
NAMED = re.compile(r"(?:build|create|make|define|get|new)\w*(?:model|net)", re.IGNORECASE)
TRAINS = ("fit", "fit_generator", "train_on_batch")
GOES_ON = ("set_weights", "load_weights", "load_model", "load_state_dict", "assign")  # from what is there


def remade_models(tree: ast.Module) -> Iterator[tuple[str, str, int, str]]:
    """Yield of each such loop the model, the loop's name, the line that makes the model, and the function."""
    makers = {*MAKERS, *_own_makers(tree)}
    for scope in scopes(tree):
        for loop in own_nodes(scope):
            if isinstance(loop, LOOPS) and (name := _counts_epochs(loop)):
                for model, line in _remade(loop, name, makers):
                    yield model, name, line, scope_name(scope)


def _own_makers(tree: ast.Module) -> Iterator[str]:
    """Yield the functions of the module that make a model, and its classes of models."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and any(_called(call) in MAKERS for call in calls(node)):
            yield node.name
        if isinstance(node, ast.ClassDef) and any(
            dotted(base).rpartition(".")[2] in MAKERS for base in node.bases
        ):
            yield node.name


def _counts_epochs(loop: Loop) -> str:
    if isinstance(loop, ast.While) or not any(_called(call) == "range" for call in calls(loop.iter)):
        return ""
    return next((name for name in targets(loop) if EPOCH.search(name)), "")


def _remade(loop: Loop, name: str, makers: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the models that the loop makes in its own body, on no condition, and then trains.

    Nothing where it goes on from weights that are there, or where what it counts is a setting of the training.
    """
    if any(_called(call) in GOES_ON for call in calls(loop)):
        return
    training = [call for call in calls(loop) if _trains(call)]
    if any(name in names_in(word.value) for call in training for word in call.keywords if word.arg == "epochs"):
        return
    trained = {dotted(call.func.value) for call in training if isinstance(call.func, ast.Attribute)}
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and not _resumes(statement):
            made = _called(statement.value)
            for model in targets(statement):
                if model in trained and (made in makers or NAMED.search(made)):
                    yield model, statement.lineno


def _trains(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in TRAINS


def _called(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2]


def _resumes(statement: ast.Assign) -> bool:
    """Whether what is made is made of what was there: ``model = make_model(model)``."""
    given = {dotted(part) for call in calls(statement.value) for part in ast.walk(call) if part is not call.func}
    return bool(given & set(targets(statement)))
