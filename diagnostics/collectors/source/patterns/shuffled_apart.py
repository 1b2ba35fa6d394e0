"""Finds inputs and targets of a training that are shuffled one after the other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from diagnostics.collectors.source.scopes import FUNCTIONS, Found, Scope, Source, calls, dotted, names_in, targets

SEEDING = re.compile(r"seed|state|reset|restore", re.IGNORECASE)
PAIRING = ("fit", "train_on_batch", "train_test_split")
"""Calls that take inputs, and then their targets."""
JOINING = ("from_tensor_slices", "TensorDataset")
"""Calls that take rows of several lists; two sets of inputs may stand there, unpaired on purpose."""
TARGETS = re.compile(r"(?:^|_|\.)(?:y|ys|labels?|targets?|masks?|classes)(?:_|\d|$)", re.IGNORECASE)
IN_PLACE, COPYING = "shuffle", "permutation"


def find(source: Source) -> Iterator[Found]:
    """Yield both lists, where the second is shuffled.

    Between the two no generator is seeded or put back, and after them neither list is re-created. Generators made
    for one shuffle, ``Random(4).shuffle(x)``, may be alike and count for nothing.
    """
    for scope in source.scopes:
        for block in _blocks(scope):
            for first, second, statement in _pairs_of(block):
                paired = _are_paired(source, scope, first, second, statement.lineno)
                if paired is not None:
                    yield Found((first, second), statement, scope.name, paired == "by name")


def _blocks(scope: Scope) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that run one after the other."""
    yield scope.node.body
    for node in scope.nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                yield block


def _pairs_of(block: list[ast.stmt]) -> Iterator[tuple[str, str, ast.stmt]]:
    latest: tuple[str, str] | None = None  # the generator, and what it shuffled
    for statement in block:
        made = _shuffle(statement)
        if made is None:
            if latest is not None and _ends(statement, *latest):
                latest = None
            continue
        generator, shuffled = made
        if latest is not None and latest[0] == generator and latest[1] != shuffled:
            yield latest[1], shuffled, statement
            latest = None
        else:
            latest = generator, shuffled


def _shuffle(statement: ast.stmt) -> tuple[str, str] | None:
    """Return the generator and what it shuffles: ``rng.shuffle(x)`` or ``x = rng.permutation(x)``."""
    call = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    generator, _, what = dotted(call.func).rpartition(".")
    shuffled = dotted(call.args[0])
    if not generator or not shuffled:
        return None
    if isinstance(statement, ast.Assign):
        return (generator, shuffled) if what == COPYING and list(targets(statement)) == [shuffled] else None
    return (generator, shuffled) if what == IN_PLACE else None


def _ends(statement: ast.stmt, generator: str, shuffled: str) -> bool:
    """Whether a statement may bring the generator back to where it was, or change what was shuffled."""
    return any(SEEDING.search(ast.unparse(call.func)) for call in calls(statement)) or any(
        name in (generator, shuffled) for node in ast.walk(statement) for name in targets(node)
    )


def _are_paired(
    source: Source, scope: Scope, first: str, second: str, line: int
) -> Literal["surely", "by name"] | None:
    """Return how sure it is that a call after the line takes a part of one list for inputs, the other for targets.

    A call that joins lists does so ``surely`` if the file gives one of each pair to a model, and never the other.
    """
    ours, theirs = {first}, {second}
    for node in scope.nodes:
        if getattr(node, "lineno", 0) <= line:
            continue
        if isinstance(node, ast.Assign) and not _makes_loader(node):
            for name, value in _assigned(node):
                from_first, from_second = _mentions(value, ours), _mentions(value, theirs)
                if name in (first, second) and not (from_first or from_second):
                    return None  # re-created
                for known, derived in ((ours, from_first), (theirs, from_second)):
                    known.discard(name)
                    if derived:
                        known.add(name)
        if isinstance(node, ast.Call):
            for x, y, is_sure in _pairing(node, _reads_pairs(source)):
                from_one = {(_mentions(part, ours), _mentions(part, theirs)) for part in (x, y)}
                if from_one == {(True, False), (False, True)}:
                    return "surely" if is_sure else "by name"
    return None


def _reads_pairs(source: Source) -> bool:
    """Whether `fit` takes a data set alone, or a loop gives the first of each pair to a model, and it alone."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
            if len(node.args) == 1 and "y" not in {word.arg for word in node.keywords}:
                return True
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2:
            inputs, outputs = map(dotted, node.target.elts)
            asked = [names_in(call) for call in calls(node) if dotted(call.func) in source.models]
            if any(inputs in names for names in asked) and not any(outputs in names for names in asked):
                return True
    return False


def _makes_loader(node: ast.Assign) -> bool:
    return isinstance(node.value, ast.Call) and bool(list(_pairing(node.value)))


def _pairing(call: ast.Call, reads_pairs: bool = False) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Yield what a call takes for inputs, what for their targets, and whether more than names say so."""
    name = dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")
    named = {word.arg: word.value for word in call.keywords}
    if name in PAIRING:
        given = [*call.args[:2], *(named[word] for word in ("x", "y") if word in named)]
        if len(given) >= 2:
            yield given[0], given[1], True
    elif name in JOINING:
        only = call.args[0] if len(call.args) == 1 else None
        given = list(only.elts) if isinstance(only, ast.Tuple | ast.List) else list(call.args)
        is_sure = reads_pairs and len(given) == 2
        if len(given) >= 2 and (is_sure or any(TARGETS.search(word) for word in names_in(given[1]))):
            yield given[0], given[1], is_sure


def _assigned(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name with its value; of a call that returns several, with the whole call."""
    for target in node.targets:
        if isinstance(target, ast.Tuple | ast.List):
            values = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else None
            for place, part in enumerate(target.elts):
                if name := dotted(part):
                    several = values is not None and len(values) == len(target.elts)
                    yield name, values[place] if values is not None and several else node.value
        elif name := dotted(target):
            yield name, node.value


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return bool(names.intersection(names_in(node)))
