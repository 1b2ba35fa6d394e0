"""Finds predictions of a dataset that are held against what another pass over it has collected."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .scopes import FUNCTIONS, Function, Scope, Source, calls, dotted, names_in, targets

PREDICTING = "predict"
LABELS = ("classes", "labels", "y")  # of a dataset, in the order of its source
COLLECTING = ("append", "extend", "add")
WRAPPERS = ("enumerate", "zip", "iter", "list", "tqdm", "trange", "progress_bar")
PAIRING = re.compile(  # calls that hold one row against another; not print, nor a histogram of each
    r"confusion|report|score|accura|precision|recall|auc|roc|kappa|corr|error|loss|metric|mse|mae|rmse|r2"
    r"|equal|close|zip|update_state|result|scatter|DataFrame|crosstab|subtract|sub",
    re.IGNORECASE,
)


def mixed_in(tree: ast.Module) -> set[str]:
    """Return the functions in which answers to a dataset meet labels from another pass over the same one.

    They meet in a comparison, in arithmetic, or as two arguments of a call that measures. Names are followed
    through the assignments of one function, datasets through their methods, but for `take`, which draws a few rows
    to look at. The module's own code has the name ``<module>``.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    collecting = {function.name for function in functions if _collects(function)}
    own = {function.name for function in functions}
    return {scope.name for scope in Source(tree).scopes if _Names(own, collecting).meet(scope)}


def held_in(tree: ast.Module) -> set[str]:
    """Return the functions in which answers to a dataset meet the labels that it was made of, in their own order.

    These are its ``classes``, ``labels`` or ``y``, or the second argument of the call that made it.
    """
    return {scope.name for scope in Source(tree).scopes if _Names(set(), set(), of_source=True).meet(scope)}


def _collects(function: Function) -> bool:
    """Whether a function of one argument iterates it."""
    named = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    iterated = (
        node.iter for node in ast.walk(function) if isinstance(node, ast.comprehension | ast.For | ast.AsyncFor)
    )
    return len(named) == 1 and any(named[0] in names_in(part) for part in iterated)


class _Names:
    """What the names of one function stand for.

    Args:
        own: names of the functions in this file.
        collecting: of those that iterate their argument.
        of_source: whether the labels that a dataset was made of count, and not those of another pass.
    """

    def __init__(self, own: set[str], collecting: set[str], of_source: bool = False) -> None:
        self._own, self._collecting, self._of_source = own, collecting, of_source
        self._labels: dict[str, ast.expr] = {}  # of a dataset: what it was given as such
        self._assigned = set[str]()
        self._made_of: dict[str, str] = {}  # a dataset, and the one that it was made of
        self._answers: dict[str, set[str]] = {}  # a name, and the datasets that it holds predictions of
        self._passes: dict[str, set[str]] = {}  # a name, and the datasets that it was collected from

    def meet(self, scope: Scope) -> bool:
        """Follow the names of a module or function; whether answers and labels meet in it."""
        for node in scope.nodes:
            if (
                isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr)
                and node.value is not None
            ):
                self._assign(list(targets(node)), node.value)
            elif isinstance(node, ast.For):
                self._add(self._passes, [dotted(part) for part in ast.walk(node.target)], self._drawn(node.iter))
            elif isinstance(node, ast.Call) and (kept := _kept(node)) is not None:
                self._keep([kept], node.args[0])
            if any(self._are_apart(one, other) for one, other in _pairs(self._sides(node))):
                return True
        return False

    def _assign(self, names: list[str], value: ast.expr) -> None:
        made_of = self._dataset(value)
        for name in names:
            if made_of in self._assigned and made_of != name and not self._of_source:  # and is no module
                self._made_of[name] = made_of
        self._assigned.update(names)
        self._keep(names, value)
        if self._of_source:
            self._labels = {n: given for n, given in self._labels.items() if not names_in(given) & set(names)}
            self._labels.update((name, given) for name in names if (given := _labels_given(value)) is not None)

    def _keep(self, names: list[str], value: ast.expr) -> None:
        self._add(self._answers, names, self._answered(value))
        self._add(self._passes, names, self._collected(value))

    def _add(self, known: dict[str, set[str]], names: list[str], datasets: set[str]) -> None:
        for name in names:
            if name and datasets:
                known.setdefault(name, set()).update(datasets)

    def _answered(self, node: ast.expr) -> set[str]:
        """Return the datasets whose predictions an expression holds."""
        found = set[str]().union(*(self._answers.get(name, set()) for name in names_in(node)))
        for call in calls(node):
            if isinstance(call.func, ast.Attribute) and call.func.attr == PREDICTING:
                given = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "x")]
                found |= {dataset for part in given if (dataset := self._dataset(part))}
        return found

    def _collected(self, node: ast.expr) -> set[str]:
        """Return the datasets that an expression, or a function that it calls, has iterated."""
        found = set[str]().union(*(self._passes.get(name, set()) for name in names_in(node)))
        if self._of_source:
            return found | self._labels_in(node)
        for inner in ast.walk(node):
            if isinstance(inner, ast.comprehension):
                found |= self._drawn(inner.iter)
            elif isinstance(inner, ast.Call) and dotted(inner.func).rpartition(".")[2] in self._collecting:
                found |= {dataset for part in inner.args if (dataset := self._dataset(part))}
        return found

    def _labels_in(self, node: ast.expr) -> set[str]:
        """Return the datasets whose labels, in the order of their source, an expression holds."""
        found, places = set[str](), set[str]()
        given = {ast.dump(labels): name for name, labels in self._labels.items()}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and (name := dotted(inner.value)) in self._assigned:
                (found if inner.attr in LABELS else places).add(name)  # the latter may be its order
            elif isinstance(inner, ast.expr) and (name := given.get(ast.dump(inner), "")):
                found.add(name)
        return found - places

    def _drawn(self, node: ast.expr) -> set[str]:
        """Return the datasets that a loop over an expression draws from."""
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in WRAPPERS:
            return set[str]().union(*map(self._drawn, node.args))
        dataset = self._dataset(node)
        return {dataset} if dataset else set()

    def _dataset(self, node: ast.expr) -> str:
        """Return the name at the beginning of ``test.unbatch().batch(8)``, or of what it was made of; else ''."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr != "take":
            node = node.func.value
        name, seen = dotted(node), set[str]()
        while name in self._made_of and name not in seen:
            seen.add(name)
            name = self._made_of[name]
        return name

    def _sides(self, node: ast.AST) -> list[ast.expr]:
        """Return the expressions that a node holds against each other row by row."""
        if isinstance(node, ast.Compare):
            return [node.left, *node.comparators]
        if isinstance(node, ast.BinOp):
            return [node.left, node.right]
        if isinstance(node, ast.Call):
            name = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")
            if name in self._own or PAIRING.search(name):
                return [part for given in _arguments(node) for part in _parts(given)]
        return []

    def _are_apart(self, one: ast.expr, other: ast.expr) -> bool:
        return bool(self._answered(one) & self._collected(other)) and not self._answered(other)


def _labels_given(made: ast.expr) -> ast.expr | None:
    """Return the labels that a call is given beside the rows: ``Batches(x, y)``; None for other expressions."""
    if not isinstance(made, ast.Call):
        return None
    named = [word.value for word in made.keywords if word.arg in LABELS]
    given = [*named, *made.args[1:2]]
    return given[0] if given and names_in(given[0]) - {""} else None


def _kept(call: ast.Call) -> str | None:
    """Return the list of ``labels.append(y)``; None for other calls."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in COLLECTING and call.args:
        return dotted(call.func.value)
    return None


def _pairs(sides: list[ast.expr]) -> Iterator[tuple[ast.expr, ast.expr]]:
    return ((one, other) for one in sides for other in sides if one is not other)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Dict):
        return node.values
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
