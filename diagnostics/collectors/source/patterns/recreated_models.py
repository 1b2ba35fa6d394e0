"""Finds a loop over epochs that re-creates its model, or draws its weights again, in each of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import (
    FUNCTIONS,
    LOOPS,
    Found,
    Loop,
    Source,
    calls,
    dotted,
    names_in,
    targets,
)

EPOCH = re.compile(r"(?:^|_)(?:ep|epochs?)_?\d*$", re.IGNORECASE)
MAKERS = ("Sequential", "Model", "clone_model")
BASES = (*MAKERS, "Module")
NAMED = re.compile(r"(?:build|create|make|define|get|new)\w{0,80}(?:model|net)", re.IGNORECASE)
TRAINS = ("fit", "fit_generator", "train_on_batch")
TRAINING = re.compile(r"(?:^|_)(?:train|fit)", re.IGNORECASE)
"""Functions of the script that are given a model to train."""
INITIAL = re.compile(r"init|reset|xavier|kaiming|glorot", re.IGNORECASE)
"""Functions for `Module.apply`; others set batch norm to evaluation, or clip weights."""
MOVES = ("to", "cuda", "cpu", "double", "float", "train")  # a model, and return it
GOES_ON = ("set_weights", "load_weights", "load_model", "load_state_dict", "assign")  # from what is there


def find(source: Source) -> Iterator[Found]:
    """Yield model, the loop's name, and whether the ``model`` or only its ``weights`` are made again."""
    makers = {*MAKERS, *_own_makers(source)}
    for scope in source.scopes:
        for loop in scope.nodes:
            if isinstance(loop, LOOPS) and (name := _counts(loop)):
                for model, how, statement in _remade(loop, name, makers):
                    is_sure = how == "weights" and _keeps_optimizer(source, model, loop)
                    if is_sure or EPOCH.search(name):
                        yield Found((model, name, how), statement, scope.name, not is_sure)


def _own_makers(source: Source) -> Iterator[str]:
    """Yield the functions of the module that make a model, and its classes of models."""
    for node in source.nodes:
        if isinstance(node, FUNCTIONS) and any(_called(call) in MAKERS for call in calls(node)):
            yield node.name
        if isinstance(node, ast.ClassDef) and any(dotted(base).rpartition(".")[2] in BASES for base in node.bases):
            yield node.name


def _keeps_optimizer(source: Source, model: str, loop: Loop) -> bool:
    """Whether the optimizer of a model is made before a loop alone: so its rounds are no trials of their own."""
    given = f"{model}.parameters"
    made = [call for call in source.calls if any(given in names_in(argument) for argument in call.args)]
    within = set(calls(loop))
    return any(call.lineno < loop.lineno for call in made) and not any(call in within for call in made)


def _counts(loop: Loop) -> str:
    if isinstance(loop, ast.While) or not any(_called(call) in ("range", "trange") for call in calls(loop.iter)):
        return ""
    return next(targets(loop), "")


def _remade(loop: Loop, name: str, makers: set[str]) -> Iterator[tuple[str, str, ast.stmt]]:
    """Yield the models that the loop makes or initialises in its own body, on no condition, and then trains.

    Nothing where it goes on from weights that are there, or where what it counts is a setting of the training.
    """
    if any(_called(call) in GOES_ON for call in calls(loop)):
        return
    training = [call for call in calls(loop) if _trains(call)]
    if any(name in names_in(word.value) for call in training for word in call.keywords if word.arg == "epochs"):
        return
    trained = {dotted(call.func.value) for call in training if isinstance(call.func, ast.Attribute)}
    trained |= set(_trained_by_hand(loop))
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and not _resumes(statement):
            made = _called(_moved(statement.value))
            for model in targets(statement):
                if model in trained and (made in makers or NAMED.search(made)):
                    yield model, "model", statement
        elif isinstance(statement, ast.Expr) and (model := _initialised(statement.value)) in trained:
            yield model, "weights", statement


def _trains(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in TRAINS


def _trained_by_hand(loop: Loop) -> Iterator[str]:
    """Yield what the loop calls if it has a backward pass, and what it gives to a function that trains."""
    backward = any(_called(call) == "backward" for call in calls(loop))
    for call in calls(loop):
        if backward and (model := dotted(call.func)):
            yield model
        if TRAINING.search(_called(call)):
            yield from (model for argument in call.args if (model := dotted(argument)))


def _moved(call: ast.Call) -> ast.Call:
    """Return the call that makes the model of ``Net().to(device)``."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in MOVES and isinstance(func.value, ast.Call):
        return _moved(func.value)
    return call


def _initialised(call: ast.expr) -> str:
    """Return the model whose weights a call draws again; empty if it does nothing of the kind."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    draws = call.func.attr == "apply" and len(call.args) == 1 and INITIAL.search(dotted(call.args[0]))
    return dotted(call.func.value) if draws or call.func.attr == "reset_parameters" else ""


def _called(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2]


def _resumes(statement: ast.Assign) -> bool:
    """Whether what is made is made of what was there: ``model = make_model(model)``."""
    given = {dotted(part) for call in calls(statement.value) for part in ast.walk(call) if part is not call.func}
    return bool(given & set(targets(statement)))
