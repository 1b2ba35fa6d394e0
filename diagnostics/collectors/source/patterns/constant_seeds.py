"""Finds a generator that is seeded with one number for every row, before the row's noise is drawn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import FUNCTIONS, Found, Function, Source, calls, dotted, targets

from .unread_splits import EVALUATION

SEEDS = {
    "torch.manual_seed": "torch",
    "torch.random.manual_seed": "torch",
    "np.random.seed": "numpy.random",
    "numpy.random.seed": "numpy.random",
    "random.seed": "random",
}
DRAWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "torch": (("torch.",), ("randn", "rand", "randn_like", "rand_like", "normal", "bernoulli")),
    "numpy.random": (
        ("np.random.", "numpy.random."),
        (
            "randn",
            "rand",
            "random",
            "random_sample",
            "normal",
            "uniform",
            "standard_normal",
            "randint",
            "binomial",
        ),
    ),
    "random": (("random.",), ("random", "uniform", "gauss", "randint", "randrange", "normalvariate")),
}
ROW_METHODS = ("__getitem__", "__getitems__")
PROJECTS = ("matmul", "mm", "einsum", "dot", "linear")  # of one random matrix for all rows, on purpose


def find(source: Source) -> Iterator[Found]:
    """Yield the generator, what it is seeded with, and what is drawn.

    Only where a method that gives rows seeds it without a condition, and adds what it draws or compares it.
    """
    constants = _constants(source)
    for kind in (node for node in source.nodes if isinstance(node, ast.ClassDef)):
        if EVALUATION.search(_words(kind.name)):
            continue
        methods = {node.name: node for node in kind.body if isinstance(node, FUNCTIONS)}
        fixed = constants | _fixed_attributes(source, methods)
        for name in ROW_METHODS:
            for method in _with_called(methods, name):
                found = _seeded(method, fixed)
                if found is not None:
                    yield found._replace(function=f"{kind.name}.{method.name}")


def _seeded(method: Function, fixed: set[str]) -> Found | None:
    if any(isinstance(node, ast.MatMult) for node in ast.walk(method)):
        return None
    made = list(calls(method))
    if any(dotted(call.func).rpartition(".")[2] in PROJECTS for call in made):
        return None
    for statement in _unconditional(method.body):
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        generator = SEEDS.get(dotted(call.func))
        if generator is None or len(call.args) != 1 or call.keywords or not _is_fixed(call.args[0], fixed):
            continue
        later = [one for one in made if one.lineno > call.lineno and _draws(one, generator)]
        seeds = [one for one in made if SEEDS.get(dotted(one.func)) == generator and one is not call]
        if later and not seeds:
            return Found((generator, ast.unparse(call.args[0]), dotted(later[0].func)), call, method.name)
    return None


def _draws(call: ast.Call, generator: str) -> bool:
    prefixes, names = DRAWS[generator]
    before, _, last = dotted(call.func).rpartition(".")
    return f"{before}." in prefixes and last in names


def _is_fixed(node: ast.expr, fixed: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    return dotted(node) in fixed


def _unconditional(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements that run for every row: also those within `with`."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _unconditional(statement.body)
        else:
            yield statement


def _constants(source: Source) -> set[str]:
    """Return names that the module assigns once, to a number."""
    given: dict[str, list[bool]] = {}
    for node in source.nodes:
        for name in targets(node):
            is_number = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            given.setdefault(name, []).append(is_number)
    parameters = {a.arg for n in source.nodes if isinstance(n, FUNCTIONS) for a in n.args.args}
    return {name for name, kinds in given.items() if kinds == [True] and "." not in name} - parameters


def _fixed_attributes(source: Source, methods: dict[str, Function]) -> set[str]:
    """Return the attributes, as ``self.seed``, that only `__init__` sets, and nobody else in the file."""
    first = methods.get("__init__")
    own = {name for node in ast.walk(first) for name in targets(node)} if first is not None else set()
    within = set() if first is None else set(map(id, ast.walk(first)))
    elsewhere = {
        name.rpartition(".")[2]
        for node in source.nodes
        if id(node) not in within
        for name in targets(node)
        if "." in name
    }
    return {name for name in own if name.startswith("self.") and name.removeprefix("self.") not in elsewhere}


def _with_called(methods: dict[str, Function], name: str) -> Iterator[Function]:
    """Yield a method and those that it calls of its own object."""
    waiting, seen = [name], set[str]()
    while waiting:
        one = waiting.pop()
        if one in seen or one not in methods:
            continue
        seen.add(one)
        yield methods[one]
        waiting += [dotted(call.func).removeprefix("self.") for call in calls(methods[one])]


def _words(name: str) -> str:
    """Divide a class name at its capitals: ``ValSet`` as ``Val_Set``."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in name)
