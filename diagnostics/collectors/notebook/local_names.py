"""The names that belong to a function: its arguments, and what its body binds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from diagnostics.collectors.source.scopes import FUNCTIONS


def arguments_of(arguments: ast.arguments) -> Iterator[ast.arg]:
    """Yield all arguments of a function."""
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None)


def own_nodes_of(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions and classes within, whose names are their own."""
    for node in body:
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                yield from (part for part in ast.walk(node) if isinstance(part, ast.NamedExpr))
            else:
                yield from own_nodes_of(ast.iter_child_nodes(node))


def bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.NamedExpr(target=ast.Name(id=name)):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Nonlocal():
            yield from node.names


def yields(function: ast.AST) -> bool:
    """Whether a function is a generator: a call runs nothing of its body."""
    body = getattr(function, "body", [])
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes_of(body))
