"""Finds the expression that was being evaluated when a frame failed, by the position that Python keeps of it.

Describes its values, and the check that refused it, in sentences.
"""

from __future__ import annotations

import ast
import linecache
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from diagnostics.facts.crash import CrashFacts, FailedExpression
from diagnostics.text.join import listed

from .values import described, evaluate, is_array, leaves

MOST_SOURCE = 2_000_000  # characters of a file
MOST_SHOWN = 120  # characters of an expression

MOST_VALUES = 6  # of an expression
MOST_LISTED = 8  # tensors of one list

_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Expression:
    """An expression or statement that failed, with what its names held.

    Attributes:
        node: the innermost part of the source that Python was evaluating.
        path: the nodes around it, the outermost first; `node` is the last.
        names: local variables before global ones.
    """

    node: ast.AST
    path: tuple[ast.AST, ...]
    names: Mapping[str, Any]

    @property
    def source(self) -> str:
        """The source of the expression, on one line."""
        return shown(self.node)

    @property
    def statement(self) -> ast.AST:
        """The innermost statement around it."""
        return next((node for node in reversed(self.path) if isinstance(node, ast.stmt)), self.node)

    @property
    def scope(self) -> ast.AST:
        """The function around it, or the module."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
        return next((node for node in reversed(self.path) if isinstance(node, kinds)), self.node)

    def known(self) -> list[tuple[str, Any]]:
        """Return the parts of the expression whose value is known, each once."""
        return list(dict(leaves(self.node, self.names)).items())

    def operands(self) -> list[ast.expr]:
        """Return what an operation or call was given, the object whose method it is first."""
        match self.node:
            case ast.BinOp():
                given = [self.node.left, self.node.right]
            case ast.Compare():
                given = [self.node.left, *self.node.comparators]
            case ast.AugAssign():
                given = [self.node.target, self.node.value]
            case ast.Subscript():
                given = [self.node.value, self.node.slice]
            case ast.Call():
                own = [self.node.func.value] if isinstance(self.node.func, ast.Attribute) else []
                given = [*own, *self.node.args, *(keyword.value for keyword in self.node.keywords)]
            case _:
                given = []
        return [part for operand in given for part in _parts(operand)]

    def tensors(self) -> dict[str, Any]:
        """Return the tensors and arrays that it was given, and those of the lists, by their source."""
        found: dict[str, Any] = {}
        for operand in self.operands():
            value, source = evaluate(operand, self.names), shown(operand)
            parts = value[:MOST_LISTED] if type(value) in (list, tuple) else ()
            found |= {source: value} if is_array(value) else {}
            found |= {f"{source}[{place}]": part for place, part in enumerate(parts) if is_array(part)}
        return found

    def origin(self, name: str) -> ast.Assign | None:
        """Return the assignment that gave a variable, or an attribute of self, its value.

        Returns:
            The only one, or the last one before, if it runs whenever the failed line does; else None.
        """
        within = self.scope
        if name.startswith("self."):
            within = next((node for node in self.path if isinstance(node, ast.ClassDef)), within)
        bindings = [node for node in ast.walk(within) if _binds(node, name)]
        if len(bindings) == 1 and isinstance(bindings[0], ast.Assign):
            return bindings[0]
        line = getattr(self.statement, "lineno", 0)
        before = [node for node in bindings if getattr(node, "lineno", 0) < line]
        last = max(before, key=lambda node: getattr(node, "lineno", 0), default=None)
        blocks = (getattr(node, block, []) for node in self.path for block in _BLOCKS)
        runs = any(last is statement for block in blocks if isinstance(block, list) for statement in block)
        return last if runs and isinstance(last, ast.Assign) else None

    def guard(self) -> tuple[ast.expr, bool] | None:
        """Return the condition under which the failed statement ran, and its truth; None if it shows none."""
        if isinstance(self.statement, ast.Assert):
            return self.statement.test, False
        for outer, inner in zip(reversed(self.path[:-1]), reversed(self.path), strict=False):
            if isinstance(outer, ast.If) and any(inner is statement for statement in (*outer.body, *outer.orelse)):
                return outer.test, any(inner is statement for statement in outer.body)
        return None


def shown(node: ast.AST) -> str:
    """Return the source of a node on one line, cut to `MOST_SHOWN`."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a statement gives a name a value."""
    match node:
        case ast.Assign():
            targets = node.targets
        case ast.AugAssign() | ast.AnnAssign() | ast.For() | ast.NamedExpr():
            targets = [node.target]
        case ast.withitem(optional_vars=ast.expr() as target):
            targets = [target]
        case _:
            targets = []
    return any(ast.unparse(part) == name for target in targets for part in _parts(target))


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _parts(part)
    else:
        yield target


def expression_of(frame: FrameType, instruction: int, line: int) -> Expression | None:
    """Return what a frame was evaluating; None if its source cannot be read.

    Args:
        frame: of a traceback.
        instruction: offset of its last instruction, `tb_lasti`.
        line: of the source.
    """
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    if not source or len(source) > MOST_SOURCE:
        return None
    names = ChainMap(dict(frame.f_locals), frame.f_globals)
    position = next(iter(list(frame.f_code.co_positions())[instruction // 2 : instruction // 2 + 1]), None)
    try:
        tree: ast.AST = ast.parse(source)
    except (SyntaxError, RecursionError, ValueError):  # of a file that was edited since
        return None
    path = tuple(path_to(tree, position, line))
    return Expression(path[-1], path, names) if len(path) > 1 else None


def path_to(tree: ast.AST, position: Any, line: int) -> Iterator[ast.AST]:
    """Yield the nodes from a file's root to the innermost one that spans a position, or else a line."""
    known = position is not None and None not in position
    begin, end = ((position[0], position[2]), (position[1], position[3])) if known else ((line, 0), (line, 0))
    node: ast.AST | None = tree
    while node is not None:
        yield node
        inner = [child for child in ast.iter_child_nodes(node) if _spans(child, begin, end, known)]
        exact = known and isinstance(node, ast.expr) and _bounds(node) == (begin, end)
        node = inner[0] if inner and not exact else None


def _bounds(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]] | None:
    if not hasattr(node, "lineno"):
        return None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def _spans(node: ast.AST, begin: tuple[int, int], end: tuple[int, int], known: bool) -> bool:
    bounds = _bounds(node)
    if bounds is None:  # a comprehension, or the arguments of a function
        return any(_spans(child, begin, end, known) for child in ast.iter_child_nodes(node))
    if not known:
        return isinstance(node, ast.stmt) and bounds[0][0] <= begin[0] <= bounds[1][0]
    return bounds[0] <= begin and end <= bounds[1]


def facts_of(failed: Expression, raised: Expression | None) -> FailedExpression:
    """Return the facts of an expression.

    Args:
        failed: the innermost of the user's own.
        raised: the statement that raised, the same one or an installed package's; None if it cannot be read.
    """
    guard = None if raised is None else raised.guard()
    values = _values(failed)
    if raised is None or guard is None or not isinstance(raised.statement, ast.Raise | ast.Assert):
        return FailedExpression(failed.source, values)
    condition = Expression(guard[0], raised.path, raised.names)
    return FailedExpression(failed.source, values, condition.source, guard[1], _values(condition))


def _values(failed: Expression) -> tuple[tuple[str, str], ...]:
    return tuple((source, described(value)) for source, value in failed.known()[:MOST_VALUES])


def values_told(crash: CrashFacts) -> str:
    """Return a sentence about the values of the failed expression; empty if none is known."""
    failed = crash.failed
    return "" if failed is None or not failed.values else f"In {failed.code}, {_held(failed.values)}."


def told(crash: CrashFacts) -> str:
    """Return what is known of the values of the expression, and of the check that raised; empty if nothing is."""
    failed = crash.failed
    if failed is None:
        return ""
    values = "" if is_check(crash) else values_told(crash)
    if failed.condition is None or not failed.condition_values:
        return values
    truth = "holds" if failed.raises_if else "does not hold"
    return f"{values} It was raised because {failed.condition} {truth}: {_held(failed.condition_values)}.".strip()


def is_check(crash: CrashFacts) -> bool:
    """Whether the user's own line raised it."""
    return crash.failed is not None and crash.failed.code.startswith(("raise", "assert"))


def _held(values: tuple[tuple[str, str], ...]) -> str:
    return listed(f"{source} is {what}" for source, what in values)
