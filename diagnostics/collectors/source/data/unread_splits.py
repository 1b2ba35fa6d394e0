"""Finds a part of a dataset that is split off and never used, while the other part is evaluated on, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import dotted, own_nodes, scope_name, scopes

SPLITS = ("random_split", "train_test_split")
LOADERS = ("DataLoader",)
EVALUATION = re.compile(
    r"(?:^|_|\.)(?:val|valid|validation|test|dev|eval|evaluation|holdout)(?:_|\d|$)", re.IGNORECASE
)
TRAINING = re.compile(r"(?:^|_|\.)(?:train|training|trn|fit)(?:_|\d|$)|train_eval|eval_train", re.IGNORECASE)


def unread_splits(tree: ast.Module) -> Iterator[tuple[str, str, str, int, str]]:
    """Yield the part that is never read, the one that is, its loader, and the line and function that make it."""
    for scope in scopes(tree):
        nodes = list(own_nodes(scope))
        for node in nodes:
            parts = parts_of_split(node)
            if len(parts) != 2:
                continue
            train, held_out = parts
            if not EVALUATION.search(held_out) or EVALUATION.search(train) or held_out.startswith("_"):
                continue
            everywhere = list(ast.walk(tree))
            if any(_mentions(other, held_out) for other in everywhere):
                continue
            loaders = [
                (name, made)
                for made in nodes
                if isinstance(made, ast.Assign) and (name := _loader_over(made, train))
            ]
            for name, made in loaders:
                if EVALUATION.search(name) and not TRAINING.search(name) and len(loaders) > 1:
                    yield held_out, train, name, made.lineno, scope_name(scope)


def parts_of_split(node: ast.AST) -> list[str]:
    """Return the names of the parts that a statement keeps of a split; empty if it makes none."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) != 1:
        return []
    target = node.targets[0]
    if dotted(node.value.func).rpartition(".")[2] not in SPLITS or not isinstance(target, ast.Tuple):
        return []
    return [dotted(part) for part in target.elts]


def _mentions(node: ast.AST, name: str) -> bool:
    """Whether a node reads a name, or names it in a string, as of `locals()`, or an attribute of an object."""
    if isinstance(node, ast.Name | ast.Attribute):
        return isinstance(node.ctx, ast.Load) and dotted(node) in (name, f"self.{name}")
    return isinstance(node, ast.Constant) and node.value == name


def _loader_over(node: ast.Assign, dataset: str) -> str:
    """Return the name under which a statement keeps a loader over a dataset; empty if it makes none."""
    if not isinstance(node.value, ast.Call) or len(node.targets) != 1:
        return ""
    call = node.value
    if dotted(call.func).rpartition(".")[2] not in LOADERS:
        return ""
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "dataset"), None)
    return dotted(node.targets[0]) if dotted(given) == dataset else ""
