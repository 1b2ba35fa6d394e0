"""Tells which expressions of a script hold what its only model answers."""

from __future__ import annotations

import ast

from .scopes import MODEL, Source, dotted

CALLS = (".predict", ".predict_on_batch", ".forward")  # of a model
KEEP_SHAPE = ("detach", "cpu", "numpy", "float", "clone", "softmax", "log_softmax", "sigmoid", "exp")
HELD = ("logits", "predictions")  # attributes of what a model of transformers, or its evaluation, returns


class ModelAnswers:
    """Knows a model by what it is asked or made of, or else by its name, such as `model` or `net`.

    Args:
        source: the module.
        kept: functions and methods that give back what they are given, for the purpose at hand.

    Attributes:
        is_one: whether one model at most is asked: of several, it cannot be told which answered.
        by_name: whether nothing but its name says that it is a model.
    """

    def __init__(self, source: Source, kept: tuple[str, ...] = KEEP_SHAPE) -> None:
        self._kept, self._models = kept, source.models
        asked = {name for call in source.calls if (name := self._model(call))}
        self.is_one, self.by_name = len(asked) <= 1, not asked & self._models

    def are_in(self, node: ast.expr, names: set[str] | frozenset[str]) -> bool:
        """Whether an expression is what the model answers, in the shape in which it does.

        Args:
            node: the expression.
            names: that hold answers.
        """
        if isinstance(node, ast.Call):
            if self._model(node):
                return True
            name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
            if name not in self._kept:
                return False
            of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            return any(self.are_in(inner, names) for inner in (*of, *node.args[:1]))
        if isinstance(node, ast.Attribute) and (node.attr in HELD or node.attr == "data"):
            return node.attr in HELD or self.are_in(node.value, names)
        return bool(name := dotted(node)) and name in names

    def _model(self, call: ast.Call) -> str:
        """Return the name of the model that a call asks; empty if it asks none."""
        name = dotted(call.func)
        for ending in CALLS:
            name = name.removesuffix(ending)
        last = name.rpartition(".")[2]
        known = name in self._models or MODEL.search(last)
        return name if known and not last[0].isupper() else ""  # a class is called to make one
