"""Tells which expressions of a script hold what its only model answers."""

from __future__ import annotations

import ast

from .scopes import MODEL, Source, dotted

CALLS = (".predict", ".predict_on_batch", ".forward")  # of a model
KEEP_SHAPE = ("detach", "cpu", "numpy", "float", "clone", "softmax", "log_softmax", "sigmoid", "exp")
HELD = ("logits", "predictions")  # attributes of what a model of transformers, or its evaluation, returns
OF_COMPILE = ("optimizer", "loss", "metrics")  # arguments of Keras' `compile`


class ModelAnswers:
    """Knows a model by its name, such as `model` or `net`, or by its `compile(loss=...)`.

    Args:
        source: the module.
        kept: functions and methods that give back what they are given, for the purpose at hand.

    Attributes:
        is_one: whether one model at most is asked: of several, it cannot be told which answered.
    """

    def __init__(self, source: Source, kept: tuple[str, ...] = KEEP_SHAPE) -> None:
        self._kept = kept
        self._compiled = {
            dotted(call.func.value)
            for call in source.calls
            if isinstance(call.func, ast.Attribute)
            and call.func.attr == "compile"
            and any(word.arg in OF_COMPILE for word in call.keywords)
        }
        self.is_one = len({name for call in source.calls if (name := self._model(call))}) <= 1

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
        known = name in self._compiled or MODEL.search(last)
        return name if known and not last[0].isupper() else ""  # a class is called to make one
