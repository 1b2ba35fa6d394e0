"""Names in the source of a Python module: where they are read and assigned, and which hold model outputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = (ast.For, ast.AsyncFor, ast.While)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MODEL = re.compile(  # and no `model_path`
    r"(?:^|_)(?:model|net|network|classifier|regressor|encoder|decoder|policy|agent|learner)_?\d*$", re.IGNORECASE
)
MODEL_CLASSES = ("Sequential", "Model")
MODEL_BASES = (*MODEL_CLASSES, "Module", "LightningModule")
OF_MODELS = ("parameters", "named_parameters", "load_state_dict", "train_on_batch", "predict_on_batch")
OF_COMPILE = ("optimizer", "loss", "metrics")  # arguments of Keras' `compile`
CALLS = (".predict", ".predict_on_batch", ".forward")  # of a model
KEEP_SHAPE = ("detach", "cpu", "numpy", "float", "clone", "softmax", "log_softmax", "sigmoid", "exp")
HELD = ("logits", "predictions")  # attributes of what a model of transformers, or its evaluation, returns


def dotted(node: ast.AST | None) -> str:
    """Return a name or a chain of attributes, ``self.model``; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


class Scope:
    """The module or a function in it.

    Attributes:
        node: its place in the tree.
        name: of the function; ``<module>`` for the module.
        nodes: in the order of the source, without those of functions and classes within.
    """

    def __init__(self, node: ast.Module | Function) -> None:
        self.node = node
        self.name = "<module>" if isinstance(node, ast.Module) else node.name
        self.nodes = list(own_nodes(node))


class Source:
    """A parsed module, walked once for all patterns.

    Attributes:
        tree: the module.
        nodes: all nodes in it.
        calls: those that call something.
        scopes: the module and each function in it.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.nodes = list(ast.walk(tree))
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.scopes = [Scope(tree), *(Scope(node) for node in self.nodes if isinstance(node, FUNCTIONS))]
        self.assigned = [node for node in self.nodes if isinstance(node, ast.Assign)]

    @cached_property
    def models(self) -> frozenset[str]:
        """The names of models: made of a class of models, or asked for what only a model has."""
        classes = [node for node in self.nodes if isinstance(node, ast.ClassDef) and _is_model(node.bases)]
        kinds = {*MODEL_CLASSES, *(node.name for node in classes)}
        parts = {inner for node in classes for inner in ast.walk(node)}  # of a model, such as `self.encoder`
        made = (
            name
            for node in self.assigned
            if isinstance(node.value, ast.Call) and _last(node.value.func) in kinds and node not in parts
            for name in targets(node)
        )
        asked = (
            dotted(call.func.value)
            for call in self.calls
            if isinstance(call.func, ast.Attribute)
            and call not in parts
            and (
                call.func.attr in OF_MODELS
                or (call.func.attr in ("eval", "train") and not call.args)
                or (call.func.attr == "compile" and any(word.arg in OF_COMPILE for word in call.keywords))
            )
        )
        return frozenset({*made, *asked} - {"", "self"})


class Found(NamedTuple):
    """A place where a pattern was found.

    Attributes:
        names: what is involved, as it is written, in the order that the pattern states.
        at: the statement or expression to change.
        function: that holds it.
        by_name: whether only the names of variables say that this is a bug.
    """

    names: tuple[str, ...]
    at: ast.stmt | ast.expr
    function: str
    by_name: bool = False


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope in the order of the source, without those of functions and classes within."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            yield from own_nodes(child)


def targets(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement assigns."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.AsyncFor):
        found = [node.target]
    elif isinstance(node, ast.With | ast.AsyncWith):
        found = [item.optional_vars for item in node.items if item.optional_vars is not None]
    for target in found:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        yield from (name for part in parts if (name := dotted(part)))


def is_read(node: ast.AST, name: str) -> bool:
    """Whether a node reads a name."""
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and dotted(node) == name


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls within a node."""
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))


def _last(function: ast.expr) -> str:
    return dotted(function).rpartition(".")[2]


def _is_model(bases: list[ast.expr]) -> bool:
    return any(_last(base) in MODEL_BASES for base in bases)


def names_in(node: ast.AST) -> set[str]:
    """Return the names, and the chains of attributes, within a node."""
    return {dotted(inner) for inner in ast.walk(node) if isinstance(inner, ast.Name | ast.Attribute)}


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
