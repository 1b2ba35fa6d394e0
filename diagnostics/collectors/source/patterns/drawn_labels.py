"""Finds labels that are drawn at random, and of which nothing but targets is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import Found, Source, dotted

DRAWS = ("randint", "integers", "random_integers", "randint_like")
CASTS = ("astype", "long", "float", "int", "to", "double")
"""Methods that change the numbers in nothing but their type."""
PAIRING = ("fit", "TensorDataset", "from_tensor_slices")
"""Calls that take inputs, and after them their targets."""
GIVEN_AS = ("y", "validation_data")


def find(source: Source) -> Iterator[Found]:
    """Yield the labels and the call that draws them.

    A name counts if each part of it, ``y`` or ``y[:400]``, is given to a data set or to ``fit`` as the target.
    One that is read anywhere else, ``centres[y]`` for instance, may have made the inputs.
    """
    targets = {id(part) for call in source.calls for part in _targets_of(call)}
    for node in source.assigned:
        for name, value in _assigned(node):
            drawn = _drawn(value)
            if drawn is None:
                continue
            reads = [one for one in source.nodes if isinstance(one, ast.Name) and one.id == name]
            given = [one for one in reads if id(one) in targets]
            if given and len(reads) == len(given) + 1:  # and where it is assigned
                scope = next(scope.name for scope in source.scopes if node in scope.nodes)
                yield Found((name, drawn), node, scope)


def _assigned(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    for target in node.targets:
        pairs: list[tuple[ast.expr, ast.expr]] = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        yield from ((part.id, value) for part, value in pairs if isinstance(part, ast.Name))


def _drawn(value: ast.expr) -> str | None:
    """Return the function that draws the value, whatever its type is changed to; None for other values."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in CASTS:
        value = value.func.value
    name = dotted(value.func) if isinstance(value, ast.Call) else ""
    return name if name.rpartition(".")[2] in DRAWS else None


def _targets_of(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the names that a call takes for targets, without the slice of each."""
    if dotted(call.func).rpartition(".")[2] not in PAIRING and getattr(call.func, "attr", "") not in PAIRING:
        return
    for part in (*call.args[1:2], *(word.value for word in call.keywords if word.arg in GIVEN_AS), *call.args[:1]):
        if isinstance(part, ast.Tuple):
            yield from (_whole(one) for one in part.elts[1:])
        elif part not in call.args[:1]:
            yield _whole(part)


def _whole(part: ast.expr) -> ast.expr:
    return part.value if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Slice) else part
