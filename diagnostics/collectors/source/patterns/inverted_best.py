"""Finds a comparison with the best result so far that takes the wrong direction for progress."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import FUNCTIONS, Found, Scope, Source, calls, dotted, targets

FALLING = re.compile(r"(?:^|_)(?:loss|losses|err|error|mse|mae|rmse|perplexity|ppl|nll)(?:_|$)", re.IGNORECASE)
RISING = re.compile(r"(?:^|_)(?:acc|accuracy|auc|f1|precision|recall|r2|iou|dice)(?:_|$)", re.IGNORECASE)
OTHERWISE = re.compile(r"neg|minus|diff|delta|gain|drop|worst|reduc|improve|one_minus|inv", re.IGNORECASE)
"""A name with such a word may be better the other way round."""
LOSS = re.compile(r"(?:^|\.)(?:\w{1,40}_loss|cross_entropy|binary_cross_entropy(?:_with_logits)?|kl_div)$")
SAVES = ("save", "save_weights", "save_pretrained", "state_dict", "deepcopy")
BEST = re.compile(r"(?:^|_)best", re.IGNORECASE)
LOWEST, HIGHEST = re.compile(r"(?:^|_)(?:min|lowest)"), re.compile(r"(?:^|_)(?:max|highest)")


def find(source: Source) -> Iterator[Found]:
    """Yield value, best, and ``rise`` or ``fall``, which counts as progress, of each comparison."""
    losses = _losses(source)
    for scope in source.scopes:
        for node in scope.nodes:
            for value, best, rises, at in _kept(node):
                is_sure = rises and value in losses | _handed(source, scope, losses) and _stops_or_saves(at, best)
                named = _is_backward(value, best, rises) and not _is_handed_another(source, scope, value)
                if (is_sure or named) and not OTHERWISE.search(f"{value} {best}"):
                    yield Found((value, best, "rise" if rises else "fall"), at, scope.name, not is_sure)


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


def _losses(source: Source) -> frozenset[str]:
    """Return the names that hold what a loss of PyTorch computes, and nothing else but numbers."""
    made = {name for node in source.assigned for name in _made(node) if name}
    found: dict[str, bool] = {}
    for node in source.assigned:
        is_loss = isinstance(node.value, ast.Call) and not any(
            isinstance(n, ast.USub) for n in ast.walk(node.value)
        )
        is_loss = is_loss and any(
            dotted(call.func) in made or LOSS.search(dotted(call.func)) for call in calls(node.value)
        )
        for name in targets(node) if not isinstance(node.value, ast.Constant) else ():
            found[name] = is_loss and found.get(name, True)
    return frozenset(name for name, is_loss in found.items() if is_loss)


def _made(node: ast.Assign) -> Iterator[str]:
    """Yield the names that a statement gives to loss functions: ``criterion = nn.CrossEntropyLoss()``."""
    pairs = [(node.targets[0], node.value)]
    if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
        pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
    for place, value in pairs:
        if isinstance(value, ast.Call) and dotted(value.func).endswith("Loss"):
            yield dotted(place)


def _handed(source: Source, scope: Scope, losses: frozenset[str]) -> frozenset[str]:
    """Return the arguments of a function that calls of it, or of an object whose class it makes callable, fill."""
    if not isinstance(scope.node, FUNCTIONS):
        return frozenset()
    given = [argument.arg for argument in scope.node.args.args if argument.arg != "self"]
    filled = [
        {name for name, value in zip(given, call.args, strict=False) if dotted(value) in losses}
        for call in source.calls
        if dotted(call.func).rpartition(".")[2] == scope.name
        or (scope.name == "__call__" and len(given) == len(call.args))
    ]
    return frozenset[str]().union(*filled)


def _stops_or_saves(node: ast.stmt, best: str) -> bool:
    """Whether the branch that keeps the best saves weights, or the other one counts what the first resets."""
    if not isinstance(node, ast.If):
        return False
    kept, other = node.body, node.orelse
    if not any(best in targets(one) for one in kept):
        kept, other = other, kept
    saved = {dotted(call.func).rpartition(".")[2] for one in kept for call in calls(one)}
    inner = [node for one in other for node in ast.walk(one) if isinstance(node, ast.AugAssign)]
    counted = {name for node in inner for name in targets(node)}
    return bool(saved & set(SAVES) or any(counted & set(targets(one)) for one in kept))


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
