"""Rewrite a script as others might have written it: the same, under other names or in another place.

What `diagnose run` says of a program must not rest on the names of its variables, nor on their being a module's.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

RENAMED, FUNCTION, CLASS = "renamed", "function", "class"
VARIANTS = (RENAMED, FUNCTION, CLASS)
Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
REFLECTION = {"globals", "locals", "exec", "eval", "vars"}  # a script that calls one of these is left as it is


def variant(source: str, kind: str) -> str | None:
    """Return the script rewritten; None if it cannot be without changing what it does.

    Args:
        source: of the script.
        kind: ``renamed``, every variable gets another name; ``function``, the module's code becomes a function's;
            ``class``, it becomes a method's, and the module's variables become attributes.
    """
    tree = ast.parse(source)
    if any(isinstance(node, ast.Global) for node in ast.walk(tree)) or REFLECTION & {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name)
    }:
        return None
    if kind == RENAMED:
        _rename(tree)
    else:
        _wrap(tree, as_class=kind == CLASS)
    return ast.unparse(ast.fix_missing_locations(tree))


def _rename(tree: ast.Module) -> None:
    """Rename every variable that is no parameter, no import, no function, and no attribute of a class."""
    kept = {*vars(builtins), *_defined(tree), *_parameters(tree), *_imported(tree), *_of_classes(tree)}
    names = [name for name in dict.fromkeys(_stored(ast.walk(tree))) if name not in kept and not _is_dunder(name)]
    new = {name: f"v{number}" for number, name in enumerate(names)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            node.name = new.get(node.name, node.name) if node.name else node.name
        elif isinstance(node, ast.Nonlocal):
            node.names = [new.get(name, name) for name in node.names]


def _wrap(tree: ast.Module, *, as_class: bool) -> None:
    """Move the module's code into a function or a method; what does not read its variables stays outside."""
    variables = set(_stored(_of_module(tree.body))) - _imported(tree)
    inside = {*variables}
    defined = [node for node in tree.body if isinstance(node, Defined)]
    while moved := [node.name for node in defined if node.name not in inside and inside & _loaded(node)]:
        inside.update(moved)
    outside: list[ast.stmt] = []
    code: list[ast.stmt] = []
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        stays = isinstance(node, Defined) and node.name not in inside
        (outside if docstring or stays or isinstance(node, ast.Import | ast.ImportFrom) else code).append(node)
    if as_class:
        attributes = variables - {*_unassignable(tree)}
        code = [_ToAttributes(attributes).visit(node) for node in code]
    made = ast.parse(
        "class WholeScript:\n    def run(self):\n        pass\nWholeScript().run()"
        if as_class
        else "def whole_script():\n    pass\nwhole_script()"
    )
    function = next(node for node in ast.walk(made) if isinstance(node, ast.FunctionDef))
    function.body = code or function.body
    tree.body = [*outside, *made.body]


class _ToAttributes(ast.NodeTransformer):
    """Turns variables into attributes of `self`, but not where a function has one of the same name."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._names:
            return node
        return ast.Attribute(ast.Name("self", ast.Load()), node.id, node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._within(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._within(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        own = {name for statement in node.body for name in _stored(_of_module([statement]))}
        return self._without(own, node)

    def _within(self, node: Scope) -> ast.AST:
        parameters = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        body = node.body if isinstance(node.body, list) else [node.body]
        return self._without({*parameters, *_stored(part for one in body for part in ast.walk(one))}, node)

    def _without(self, own: set[str], node: ast.AST) -> ast.AST:
        if "self" in own:  # a method of the script's own class: its `self` is another
            own = {*own, *self._names}
        outer, self._names = self._names, self._names - own
        result = self.generic_visit(node)
        self._names = outer
        return result


def _unassignable(tree: ast.Module) -> Iterator[str]:
    """Names that something binds which cannot bind an attribute, or that a comprehension has for itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr | ast.comprehension) and node.target is not None:
            yield from _stored(ast.walk(node.target))
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
    for node in tree.body:
        # A method's `self` hides the other: what such classes read stays a variable.
        if isinstance(node, Defined):
            for part in ast.walk(node):
                if isinstance(part, Scope) and any(
                    isinstance(argument, ast.arg) and argument.arg == "self" for argument in ast.walk(part.args)
                ):
                    yield from _loaded(part)


def _of_module(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Walk statements without entering functions, classes and comprehensions, which have names of their own."""
    for node in body:
        yield node
        if not isinstance(
            node, Defined | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        ):
            yield from _of_module(ast.iter_child_nodes(node))


def _stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name


def _loaded(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _defined(tree: ast.AST) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, Defined)}


def _parameters(tree: ast.AST) -> set[str]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _imported(tree: ast.AST) -> set[str]:
    names = (node.names for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {(alias.asname or alias.name).partition(".")[0] for imported in names for alias in imported}


def _of_classes(tree: ast.AST) -> set[str]:
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {name for body in bodies for name in _stored(_of_module(body))}


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
