"""Finds hooks of a sequence of batches that are named as Keras names none."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable

import keras

from diagnostics.collectors.keras.fit_probes import FitProbe
from diagnostics.collectors.shared.script_line import defined_at
from diagnostics.collectors.source.read import parsed
from diagnostics.facts.data import FitData
from diagnostics.facts.where import is_user_code

PREFIX = "on_"  # of the methods that Keras calls


class UncalledHooks(FitProbe):
    """Compares the hooks of the script's class with those of its base class, and with what the script calls."""

    when = "first step"

    def facts(self) -> Iterable[FitData]:
        """Return the first hook that nothing calls."""
        kind, base = type(self.subject.given.get("x")), keras.utils.PyDataset
        if not issubclass(kind, base):
            return
        known = tuple(name for name in dir(base) if name.startswith(PREFIX))
        for parent in kind.__mro__[: kind.__mro__.index(base)]:
            for name, method in vars(parent).items():
                where = defined_at(method)
                if not name.startswith(PREFIX) or name in known or where is None:
                    continue
                if not _is_mentioned(name, method.__code__.co_filename):
                    yield FitData(kind.__name__, hook=name, hooks=known, where=where)
                    return


def _is_mentioned(name: str, file: str) -> bool:
    """Return whether this file or another one of the script has a name anywhere but where a method gets it."""
    others = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    files = {file, *(other for other in others if isinstance(other, str) and is_user_code(other))}
    trees = (parsed(one) for one in files if one.endswith(".py"))
    nodes = (node for tree in trees if tree is not None for node in ast.walk(tree))
    return any(name in (getattr(node, "attr", None), getattr(node, "id", None), _text(node)) for node in nodes)


def _text(node: ast.AST) -> object:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
