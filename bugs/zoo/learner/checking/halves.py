"""Cuts a script at the statement that trains: what prepares stands before it, what evaluates behind it."""

from __future__ import annotations

import ast
from types import CodeType
from typing import NamedTuple

STEPS = {"step", "train_on_batch", "apply_gradients", "training_step"}  # what the body of a training loop calls
SPAWNS = {"spawn", "start_processes"}  # of torch.multiprocessing: they train in other processes


class Halves(NamedTuple):
    """A script in three parts, ready for `exec`.

    Attributes:
        before: all statements before the one that trains, as one piece.
        training: the statement that trains.
        after: the statements behind it, one by one.
    """

    before: CodeType
    training: CodeType
    after: tuple[CodeType, ...]


def halves(text: str, file: str) -> Halves | None:
    """Cut a script at its first top-level statement that trains; None if no statement at the top level does.

    Args:
        text: of the script.
        file: its name in tracebacks.

    Raises:
        SyntaxError: it does not compile.
    """
    tree = ast.parse(text, file)
    at = next((number for number, statement in enumerate(tree.body) if _trains(statement)), None)
    if at is None:
        return None
    before = compile(ast.Module(tree.body[:at], []), file, "exec")
    training, *after = (compile(ast.Module([each], []), file, "exec") for each in tree.body[at:])
    return Halves(before, training, tuple(after))


def _trains(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return False
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    if any(getattr(call, "attr", getattr(call, "id", "")) in SPAWNS for call in calls):
        return True
    methods = [call for call in calls if isinstance(call, ast.Attribute)]
    if isinstance(statement, ast.For | ast.While) and any(method.attr in STEPS for method in methods):
        return True
    # `model.train()` is the mode of a PyTorch module; only a trainer trains so.
    return any(
        method.attr == "fit" or (method.attr == "train" and "trainer" in ast.unparse(method.value).lower())
        for method in methods
    )
