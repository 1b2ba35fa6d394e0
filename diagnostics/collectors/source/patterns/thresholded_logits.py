"""Finds logits of a model that are compared with 0.5 or rounded, as if they were probabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import (
    FUNCTIONS,
    Found,
    Function,
    ModelAnswers,
    Scope,
    Source,
    calls,
    dotted,
    targets,
)

HALF = 0.5
RAW = ("detach", "cpu", "numpy", "float", "clone", "squeeze", "flatten", "view", "reshape", "ravel", "item", "to")
"""Functions that leave a number what it is."""
COMPARE = ("gt", "ge", "lt", "le", "greater", "greater_equal", "less", "less_equal")
SIGMOID = ("sigmoid", "Sigmoid", "expit", "logsigmoid", "softmax", "Softmax")


def find(source: Source) -> Iterator[Found]:
    """Yield the expression, and ``0.5`` or ``round``, of each such use of what the only model returns.

    Only of names that hold that and nothing else. An argument of a function of the script is followed where every
    call hands it such a name. Nothing where more than one name looks like a model's, or where a class of the
    script may end in a sigmoid itself.
    """
    model = ModelAnswers(source, RAW)
    if not model.is_one or any(_has_sigmoid(node) for node in source.nodes if isinstance(node, ast.ClassDef)):
        return
    held = {scope: _held(scope, model, frozenset()) for scope in source.scopes}
    for scope in held:
        if isinstance(scope.node, FUNCTIONS) and (handed := _handed(scope.node, held, model)):
            held[scope] = _held(scope, model, handed)
    for scope, names in held.items():
        for node in scope.nodes:
            for of, how in _uses(node):
                if _is_raw(of, names, model):
                    yield Found((ast.unparse(of), how), of, scope.name, model.by_name)


def _has_sigmoid(node: ast.AST) -> bool:
    return any(dotted(call.func).rpartition(".")[2] in SIGMOID for call in calls(node))


def _is_raw(node: ast.expr, names: frozenset[str], model: ModelAnswers) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return model.are_in(node, names)


def _held(scope: Scope, model: ModelAnswers, handed: frozenset[str]) -> frozenset[str]:
    """Return the names, some of them handed over, that hold what the model returns and nothing else."""
    raw: set[str] = set(handed)
    other: set[str] = set()
    for node in scope.nodes:
        alone = isinstance(node, ast.Assign) and len(node.targets) == 1 and bool(dotted(node.targets[0]))
        is_raw = isinstance(node, ast.Assign) and _is_raw(node.value, frozenset(raw - other), model)
        for name in targets(node):
            (raw if alone and is_raw else other).add(name)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            other.add(dotted(node.value))
    return frozenset(raw - other)


def _handed(function: Function, held: dict[Scope, frozenset[str]], model: ModelAnswers) -> frozenset[str]:
    """Return the arguments of a function that get what the model returns in every call of it by its name."""
    names = [argument.arg for argument in function.args.args]
    calls_of_it = [
        (call, held[scope])
        for scope in held
        for call in scope.nodes
        if isinstance(call, ast.Call) and dotted(call.func) == function.name
    ]
    if not calls_of_it or any(isinstance(one, ast.Starred) for call, _ in calls_of_it for one in call.args):
        return frozenset()
    given = [
        {
            name
            for name, value in (*zip(names, call.args, strict=False), *_by_name(call))
            if _is_raw(value, known, model)
        }
        for call, known in calls_of_it
    ]
    return frozenset(set.intersection(*given))


def _by_name(call: ast.Call) -> list[tuple[str, ast.expr]]:
    return [(word.arg, word.value) for word in call.keywords if word.arg is not None]


def _uses(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield what a node compares with 0.5, or rounds."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sides = (node.left, node.comparators[0])
        if isinstance(node.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
            yield from ((one, "0.5") for one, other in (sides, sides[::-1]) if _is_half(other))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        of = [node.func.value, *node.args] if node.func.attr not in RAW else []
        if dotted(node.func.value) in (
            "torch",
            "np",
            "numpy",
            "tf",
            "tf.math",
            "jnp",
            "K",
            "ops",
            "keras.ops",
            "th",
        ):
            of = of[1:]
        if node.func.attr in ("round", "round_", "rint") and len(of) == 1:
            yield of[0], "round"
        elif node.func.attr in COMPARE and len(of) == 2 and _is_half(of[1]):
            yield of[0], "0.5"


def _is_half(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == HALF
