"""Finds statements whose result is lost: a call that returns a new tensor, a loop's variable that is assigned."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import FUNCTIONS, Found, Source, dotted, is_read, targets

LIBRARIES = ("torch", "F", "functional", "nn.functional", "torch.nn.functional")
FUNCTIONAL = (
    *("relu", "sigmoid", "tanh", "softmax", "log_softmax", "dropout", "normalize", "clamp", "clip", "gelu"),
    *("leaky_relu", "permute", "transpose", "flatten", "squeeze", "unsqueeze", "nan_to_num", "layer_norm"),
)
"""Functions that leave what they are given as it is."""
METHODS = (
    *("masked_fill", "masked_scatter", "clamp", "clamp_min", "clamp_max", "permute", "unsqueeze", "squeeze"),
    *("softmax", "log_softmax", "index_fill", "index_add"),
)
"""Methods of a tensor with a twin that works in place, whose name ends in an underscore."""
OF_TABLES = ("dropna", "fillna", "drop_duplicates", "reset_index", "sort_values")
OF_DATASETS = {"shuffle": ("seed",)}
"""Methods that return a new data set, and an argument that only these have. Not `map`: it may fill a cache."""
STATE = re.compile(r"(?:^|[_.])(?:h|c|hx|cx|hidden|states?|cell)(?:_?[nt\d])?$")
"""Names of hidden states: other things that are detached, such as a memory of nodes, may do so in place."""
IMPORTS = (ast.Import, ast.ImportFrom)
PLACES = ("parameters", "buffers", "named_parameters", "named_buffers")


def find(source: Source) -> Iterator[Found]:
    """Yield the statement, what was to change, and ``rebound`` if that is a loop's variable, else nothing."""
    own = {node.name for node in source.nodes if isinstance(node, FUNCTIONS)}
    imported = {
        name.asname or name.name for node in source.nodes if isinstance(node, IMPORTS) for name in node.names
    }
    tried = {id(inner) for node in source.nodes if _expects_errors(node) for inner in ast.walk(node)}
    for scope in source.scopes:
        states = {name for node in scope.nodes for name in _states(node)}
        for node in scope.nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and id(node) not in tried:
                if changed := _unchanged(node.value, own, imported, states):
                    by_name = _called(node.value) == "detach" and changed not in states
                    yield Found((_shown(node), changed, ""), node, scope.name, by_name)
            elif isinstance(node, ast.For):
                for statement, name in _rebound(node):
                    yield Found((_shown(statement), name, "rebound"), statement, scope.name)


def _expects_errors(node: ast.AST) -> bool:
    """Whether a call within may be there for its error alone."""
    if isinstance(node, ast.With):
        return any("raises" in ast.unparse(item.context_expr).lower() for item in node.items)
    return isinstance(node, ast.Try)


def _states(node: ast.AST) -> set[str]:
    """Return what a call takes and gives back beside its result: ``out, h = rnn(x, h)``."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return set()
    names = list(targets(node))
    return set(names).intersection(map(dotted, node.value.args)) if len(names) > 1 else set()


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _unchanged(call: ast.Call, own: set[str], imported: set[str], states: set[str]) -> str:
    """Return what a call leaves as it is, although its result is all that it has; empty if not known."""
    if not isinstance(call.func, ast.Attribute):
        return ""
    owner, name = dotted(call.func.value), call.func.attr
    words = {word.arg for word in call.keywords}
    if not owner or name in own or words & {"inplace", "out", None}:
        return ""
    if owner in LIBRARIES:
        return dotted(call.args[0]) if name in FUNCTIONAL and call.args else ""
    if owner in imported or owner in ("self", "cls") or owner.partition(".")[0] in imported:
        return ""
    if name == "detach" and (owner in states or STATE.search(owner)):
        return owner
    if name in METHODS or name in OF_TABLES or words & set(OF_DATASETS.get(name, ())):
        return owner
    return ""


def _rebound(loop: ast.For) -> Iterator[tuple[ast.Assign, str]]:
    """Yield each assignment to the name of a parameter in a loop over parameters that nothing reads after it."""
    for name in _parameters(loop):
        for place, statement in enumerate(loop.body):
            if not isinstance(statement, ast.Assign) or [dotted(one) for one in statement.targets] != [name]:
                continue
            after = (inner for later in loop.body[place + 1 :] for inner in ast.walk(later))
            if _makes_another(statement.value) and not any(
                is_read(inner, name) or is_read_as_owner(inner, name) for inner in after
            ):
                yield statement, name


def is_read_as_owner(node: ast.AST, name: str) -> bool:
    """Whether a node reads an attribute of what a name stands for."""
    return isinstance(node, ast.Attribute) and dotted(node).startswith(f"{name}.")


def _parameters(loop: ast.For) -> Iterator[str]:
    """Yield the names that stand for a parameter in each round of a loop."""
    over, target = loop.iter, loop.target
    given, parts = [over], [target]
    if isinstance(over, ast.Call) and dotted(over.func) == "zip" and isinstance(target, ast.Tuple):
        given, parts = list(over.args), list(target.elts)
    for one, part in zip(given, parts, strict=False):
        if not isinstance(one, ast.Call) or not isinstance(one.func, ast.Attribute):
            continue
        if one.func.attr in PLACES:
            last = part.elts[-1] if isinstance(part, ast.Tuple) and part.elts else part
            if name := dotted(last):
                yield name


def _makes_another(value: ast.expr) -> bool:
    """Whether an expression computes a new tensor, and changes none in place on the way."""
    called = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    if any(not isinstance(one, ast.Attribute) or one.attr.endswith("_") for one in called):
        return False
    return isinstance(value, ast.BinOp | ast.Call)


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node).partition("\n")[0]
    return text if len(text) <= 60 else f"{text[:57]}..."
