"""Finds a comparison with the best result so far that takes the wrong direction for progress."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import FUNCTIONS, Found, Scope, Source, dotted, targets

FALLING = re.compile(r"(?:^|_)(?:loss|losses|err|error|mse|mae|rmse|perplexity|ppl|nll)(?:_|$)", re.IGNORECASE)
RISING = re.compile(r"(?:^|_)(?:acc|accuracy|auc|f1|precision|recall|r2|iou|dice)(?:_|$)", re.IGNORECASE)
OTHERWISE = re.compile(r"neg|minus|diff|delta|gain|drop|worst|reduc|improve|one_minus|inv", re.IGNORECASE)
"""A name with such a word may be better the other way round."""
BEST = re.compile(r"(?:^|_)best", re.IGNORECASE)
LOWEST, HIGHEST = re.compile(r"(?:^|_)(?:min|lowest)"), re.compile(r"(?:^|_)(?:max|highest)")


def find(source: Source) -> Iterator[Found]:
    """Yield value, best, and ``rise`` or ``fall``, which counts as progress, of each comparison."""
    for scope in source.scopes:
        for node in scope.nodes:
            for value, best, rises, at in _kept(node):
                if _is_backward(value, best, rises) and not _is_handed_another(source, scope, value):
                    yield Found((value, best, "rise" if rises else "fall"), at, scope.name)


def _kept(node: ast.AST) -> Iterator[tuple[str, str, bool, ast.stmt]]:
    """Yield what becomes the best if it is above (or below) the best so far."""
    if isinstance(node, ast.If):
        for compared in _comparisons(node.test):
            left, right = _name(compared.left), _name(compared.comparators[0])
            above = isinstance(compared.ops[0], ast.Gt | ast.GtE)
            if not above and not isinstance(compared.ops[0], ast.Lt | ast.LtE):
                continue
            for value, best, rises in ((left, right, above), (right, left, not above)):
                if _assigns(node.body, best, value):
                    yield value, best, rises, node
                elif not isinstance(node.test, ast.BoolOp) and _assigns(node.orelse, best, value):
                    yield value, best, not rises, node
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.value.args) == 2:
        of = dotted(node.value.func)
        for best in targets(node) if of in ("max", "min") else ():
            first, second = map(_name, node.value.args)
            if best in (first, second):
                yield (second if best == first else first), best, of == "max", node


def _comparisons(test: ast.expr) -> Iterator[ast.Compare]:
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    yield from (part for part in parts if isinstance(part, ast.Compare) and len(part.ops) == 1)


def _assigns(body: list[ast.stmt], best: str, value: str) -> bool:
    """Whether the statements keep the value as the best."""
    if not best or not value:
        return False
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            if any(_name(place) == best and _name(given) == value for place, given in pairs):
                return True
    return False


def _name(node: ast.expr) -> str:
    """Return a name, or the key of ``metrics["val_loss"]``; empty for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        return _name(node.func.value)
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return node.slice.value
        return _name(node.value)  # history["val_loss"][-1]
    return dotted(node)


def _is_backward(value: str, best: str, rises: bool) -> bool:
    value, best = value.rpartition(".")[2], best.rpartition(".")[2]
    if OTHERWISE.search(value) or OTHERWISE.search(best):
        return False
    falling, rising = FALLING.search(value), RISING.search(value)
    if falling and not rising:
        return rises and not RISING.search(best) and bool(BEST.search(best) or LOWEST.search(best))
    if rising and not falling:
        return not rises and not FALLING.search(best) and bool(BEST.search(best) or HIGHEST.search(best))
    return False


def _is_handed_another(source: Source, scope: Scope, value: str) -> bool:
    """Whether the value is an argument that callers fill with a score or with a loss of the other sign."""
    if not isinstance(scope.node, FUNCTIONS) or value not in {argument.arg for argument in scope.node.args.args}:
        return False
    other = RISING if FALLING.search(value) else FALLING
    for call in source.calls:
        given = [*call.args, *(word.value for word in call.keywords if word.arg == value)]
        if any(isinstance(one, ast.UnaryOp) or other.search(dotted(one).rpartition(".")[2]) for one in given):
            return True
    return False
