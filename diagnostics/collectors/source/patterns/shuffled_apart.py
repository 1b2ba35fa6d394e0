"""Finds inputs and targets of a training that are shuffled one after the other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from diagnostics.collectors.source.scopes import FUNCTIONS, Found, Scope, Source, calls, dotted, names_in, targets

SEEDING = re.compile(r"seed|state|reset(?!_index)|restore", re.IGNORECASE)
PAIRING = ("fit", "train_on_batch", "train_test_split")
"""Calls that take inputs, and then their targets."""
JOINING = ("from_tensor_slices", "TensorDataset")
"""Calls that take rows of several lists; two sets of inputs may stand there, unpaired on purpose."""
ZIPPING = (*JOINING, "zip", "from_dict", "DataFrame")
"""Calls that take lists of equal length."""
IN_PLACE, COPYING = "shuffle", ("permutation", "shuffle")
ORDERS = ("permutation", "randperm")


class _Shuffle(NamedTuple):
    """A list that is brought into a random order.

    Attributes:
        of: its name.
        named: its name afterwards.
        generator: that draws the order.
        drawn: the call that draws it.
    """

    of: str
    named: str
    generator: str
    drawn: ast.Call

    def is_apart(self, other: _Shuffle) -> bool:
        """Return whether this is another list, in another order drawn by the same generator."""
        return (
            self.drawn is not other.drawn
            and self.generator == other.generator
            and not {self.of, self.named} & {other.of, other.named}
        )


def find(source: Source) -> Iterator[Found]:
    """Yield both lists, where the second is shuffled.

    Between the two no generator is seeded or put back, and after them neither list is re-created. Generators made
    for one shuffle, ``Random(4).shuffle(x)``, may be alike and count for nothing.
    """
    for scope in source.scopes:
        for block in _blocks(scope):
            for first, second, statement in _pairs_of(block):
                paired = _are_paired(source, scope, first.named, second.named, statement.lineno)
                if paired is not None:
                    yield Found((first.of, second.of), statement, scope.name, paired == "maybe")


def _blocks(scope: Scope) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that run one after the other."""
    yield scope.node.body
    for node in scope.nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                yield block


def _pairs_of(block: list[ast.stmt]) -> Iterator[tuple[_Shuffle, _Shuffle, ast.stmt]]:
    latest: list[_Shuffle] = []  # into one order
    orders: dict[str, ast.Call] = {}  # by name
    for statement in block:
        if any(SEEDING.search(ast.unparse(call.func)) for call in calls(statement)):
            latest, orders = [], {}
            continue
        made = list(_shuffles(statement, orders))
        changed = {name for node in ast.walk(statement) for name in targets(node)}
        if not made and any(changed & {one.generator, one.of, one.named} for one in latest):
            latest = []
        for one in made:
            if latest and one.is_apart(latest[0]):
                yield from ((other, one, statement) for other in latest)
                latest = []
            elif latest and one.drawn is latest[0].drawn:
                latest.append(one)
            else:
                latest = [one]
        for name in changed:
            orders.pop(name, None)
        if isinstance(statement, ast.Assign):
            drawn = ((name, value) for name, value in _assigned(statement) if _generator(value, ORDERS))
            orders |= {name: value for name, value in drawn if isinstance(value, ast.Call)}


def _shuffles(statement: ast.stmt, orders: Mapping[str, ast.Call]) -> Iterator[_Shuffle]:
    """Yield what a statement shuffles, as ``rng.shuffle(x)`` does, or ``x = x[rng.permutation(n)]``."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if (generator := _generator(call, (IN_PLACE,))) and len(call.args) == 1 and (name := dotted(call.args[0])):
            yield _Shuffle(name, name, generator, call)
    elif isinstance(statement, ast.Assign):
        for name, value in _assigned(statement):
            copied = _copied(name, value)
            found = (
                [copied] if copied else [one for node in ast.walk(value) if (one := _taken(name, node, orders))]
            )
            if len(found) == 1:
                yield found[0]


def _copied(name: str, value: ast.expr) -> _Shuffle | None:
    """Read ``x = rng.permutation(x)``; with another name, the argument may be the number of rows."""
    if not isinstance(value, ast.Call) or len(value.args) != 1 or dotted(value.args[0]) != name:
        return None
    generator = _generator(value, COPYING)
    return _Shuffle(name, name, generator, value) if generator else None


def _taken(name: str, node: ast.AST, orders: Mapping[str, ast.Call]) -> _Shuffle | None:
    """Read ``x[rng.permutation(n)]``, ``x[order]``, ``x[order[:400]]`` or ``x.sample(frac=1)``."""
    if isinstance(node, ast.Subscript):
        place = node.slice.value if isinstance(node.slice, ast.Subscript) else node.slice
        drawn = place if isinstance(place, ast.Call) else orders.get(dotted(place))
        generator = _generator(drawn, ORDERS)
        if isinstance(drawn, ast.Call) and generator and (of := dotted(node.value)):
            return _Shuffle(of, name, generator, drawn)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sample":
        options = {word.arg: ast.unparse(word.value) for word in node.keywords}
        if options in ({"frac": "1"}, {"frac": "1.0"}) and not node.args and (of := dotted(node.func.value)):
            return _Shuffle(of, name, "numpy.random", node)
    return None


def _generator(call: ast.AST | None, functions: tuple[str, ...]) -> str:
    """Return the name of the generator from which a call draws an order; empty for other calls."""
    if not isinstance(call, ast.Call):
        return ""
    generator, _, what = dotted(call.func).rpartition(".")
    if what not in functions or any(word.arg != "generator" for word in call.keywords):
        return ""
    return dotted(call.keywords[0].value) if call.keywords else generator


def _are_paired(
    source: Source, scope: Scope, first: str, second: str, line: int
) -> Literal["surely", "maybe"] | None:
    """Return how sure it is that a part of one list serves as inputs, and the same part of the other as targets.

    A call that joins lists does so ``surely`` if the file gives one of each pair to a model, and never the other.
    Lists ``maybe`` belong together if a call takes a row of each, or if both have the same index.
    """
    ours, theirs = {first}, {second}
    indices: tuple[set[str], set[str]] = set(), set()  # of each list
    maybe = False
    for node in scope.nodes:
        if getattr(node, "lineno", 0) <= line:
            continue
        if isinstance(node, ast.Assign) and _called(node.value) not in (*PAIRING, *JOINING):
            for name, value in _assigned(node):
                from_first, from_second = _mentions(value, ours), _mentions(value, theirs)
                if name in (first, second) and not (from_first or from_second):
                    return None  # re-created
                for known, derived in ((ours, from_first), (theirs, from_second)):
                    known.discard(name)
                    if derived:
                        known.add(name)
        if isinstance(node, ast.Call):
            if _are_of_both(_pairing(node, _reads_pairs(source)), ours, theirs):
                return "surely"
            if _called(node) in (*ZIPPING, *_takers_of_rows(source)):
                maybe = maybe or _are_of_both(_given(node), ours, theirs)
        elif isinstance(node, ast.Subscript) and names_in(node.slice):
            for known, places in zip((ours - theirs, theirs - ours), indices, strict=True):
                if dotted(node.value) in known:
                    places.add(ast.dump(node.slice))
    return "maybe" if maybe or indices[0] & indices[1] else None


def _are_of_both(parts: Sequence[ast.expr], ours: set[str], theirs: set[str]) -> bool:
    """Return whether one part is made of one list alone, and another part of the other."""
    return {(True, False), (False, True)} <= {(_mentions(part, ours), _mentions(part, theirs)) for part in parts}


def _takers_of_rows(source: Source) -> Iterator[str]:
    """Yield the functions and classes of the file that take the same row of two lists, ``x[i], y[i]``."""
    for node in source.nodes:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found = [
                inner for inner in ast.walk(node) if isinstance(inner, ast.Subscript) and names_in(inner.slice)
            ]
            rows = {(ast.dump(one.slice), dotted(one.value)) for one in found if dotted(one.value)}
            if len({index for index, _ in rows}) < len(rows):
                yield node.name


def _given(call: ast.Call) -> list[ast.expr]:
    """List the arguments of a call, and what a dict, a list or a tuple among them holds."""
    given: list[ast.expr] = []
    for part in (*call.args, *(word.value for word in call.keywords)):
        if isinstance(part, ast.Tuple | ast.List):
            given += part.elts
        else:
            given += part.values if isinstance(part, ast.Dict) else [part]
    return given


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


def _called(node: ast.expr) -> str:
    """Return the last part of the name that an expression calls; empty if it is not a call."""
    if not isinstance(node, ast.Call):
        return ""
    return dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")


def _pairing(call: ast.Call, reads_pairs: bool) -> Sequence[ast.expr]:
    """Return what a call surely takes for inputs and for their targets; nothing of other calls."""
    name = _called(call)
    if name in PAIRING:
        return [*call.args[:2], *(word.value for word in call.keywords if word.arg in ("x", "y"))][:2]
    return given if name in JOINING and reads_pairs and len(given := _given(call)) == 2 else ()


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
