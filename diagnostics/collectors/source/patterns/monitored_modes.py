"""Finds the callbacks of Lightning that look for progress in a metric, and the direction they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import Found, Source, dotted

LIGHTNING = ("lightning", "pytorch_lightning")
CALLBACKS = ("ModelCheckpoint", "EarlyStopping")


def find(source: Source) -> Iterator[Found]:
    """Yield callback, metric, and ``rise`` or ``fall``, which it waits for, of each call that says so.

    Both wait for a fall unless they are told otherwise. A script that imports Keras too is left out: its callbacks
    have the same names, and guess the direction.
    """
    imported = set(_imported(source))
    if not imported.intersection(LIGHTNING) or imported.intersection(("keras", "tensorflow")):
        return
    for scope in source.scopes:
        for node in scope.nodes:
            if not isinstance(node, ast.Call):
                continue
            name, given = dotted(node.func).rpartition(".")[2], {word.arg: word.value for word in node.keywords}
            if name not in CALLBACKS or None in given or any(isinstance(one, ast.Starred) for one in node.args):
                continue
            monitored, rises = _text(_monitor(name, node, given)), _rises(given)
            if monitored is not None and rises is not None and _matters(given):
                yield Found((name, monitored, "rise" if rises else "fall"), node, scope.name)


def _imported(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _monitor(name: str, call: ast.Call, given: dict[str | None, ast.expr]) -> ast.expr | None:
    place = 0 if name == "EarlyStopping" else 2  # of the positional argument
    return call.args[place] if len(call.args) > place else given.get("monitor")


def _rises(given: dict[str | None, ast.expr]) -> bool | None:
    if "mode" not in given:
        return False
    mode = _text(given["mode"])
    return None if mode not in ("min", "max") else mode == "max"


def _matters(given: dict[str | None, ast.expr]) -> bool:
    """Whether a checkpoint keeps the best alone: all of them, with -1, hold the best among them."""
    kept = given.get("save_top_k")
    if kept is None:
        return True
    return isinstance(kept, ast.Constant) and isinstance(kept.value, int) and kept.value > 0


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
