"""Finds the lines of user code that may have launched the failed work.

The host queues work and goes on; it hears of a failure at the next point where it waits. What failed was launched
since the training step began, so the lines from there to the wait are the candidates.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Iterable, Iterator, Sequence

from diagnostics.facts.crash import FrameFacts

MOST_LINES = 12  # a step with more calls than that is not narrowed down by listing them

# Methods that work on the host alone, only move data, or wait for the device instead of giving it work.
_HOST_METHODS = frozenset(
    {"append", "extend", "update", "items", "keys", "values", "get", "format", "write", "split", "join", "strip"}
    | {"pop", "copy", "sort", "index", "count", "lower", "upper", "startswith", "endswith"}
    | {"set_postfix", "set_description", "info", "debug", "warning", "time", "perf_counter", "monotonic"}
    | {"to", "cuda", "cpu", "item", "tolist", "numpy", "synchronize", "size"}
    | {"train", "eval", "zero_grad", "parameters", "state_dict", "no_grad", "autocast", "manual_seed"}
)
_HOST_FUNCTIONS = frozenset([*dir(builtins), "tqdm", "set_seed"])


def candidates(frames: Sequence[FrameFacts]) -> tuple[FrameFacts, ...]:
    """List the user's lines that launched work on a device, from the start of the training step to the wait.

    Args:
        frames: of the traceback, outermost first. The source of the user's files is read where it is at hand.

    Returns:
        The lines in order of execution, the latest `MOST_LINES` of them; empty if no source could be read.
    """
    found: list[FrameFacts] = []
    for frame in reversed([frame for frame in frames if frame.yours]):
        before, in_loop = _before(frame)
        found = before + found
        if in_loop:
            break
    return tuple(found[-MOST_LINES:])


def _before(frame: FrameFacts) -> tuple[list[FrameFacts], bool]:
    """List the lines of one frame, its own included, and say whether a loop around it bounds them."""
    lines = linecache.getlines(frame.file)
    if not lines or linecache.getline(frame.file, frame.line).strip() != (frame.code or ""):
        return [], False  # no source, or not the one that ran
    try:
        tree: ast.AST = ast.parse("".join(lines))
    except SyntaxError:  # a notebook's cell with a line that is IPython's
        return [], False
    body, in_loop = _step(tree, frame.line)
    launched = [
        FrameFacts(frame.file, line, frame.function, lines[line - 1].strip(), yours=True)
        for line in _launching_lines(body)
        if line <= frame.line
    ]
    return launched, in_loop


def _step(tree: ast.AST, line: int) -> tuple[list[ast.stmt], bool]:
    """Return the body of the innermost loop around a line, or else of its function or file."""
    body: list[ast.stmt] = getattr(tree, "body", [])
    in_loop = False
    enclosing = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
    ]
    for node in sorted(enclosing, key=lambda node: node.lineno):  # outermost first
        body, in_loop = node.body, isinstance(node, ast.For | ast.While)
    return body, in_loop


def _launching_lines(body: Iterable[ast.stmt]) -> Iterator[int]:
    """Yield the first line of each statement that may launch work on a device."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        if any(blocks):
            if _gives_work(_head(statement)):
                yield statement.lineno
            for block in blocks:
                yield from _launching_lines(block)
            for handler in getattr(statement, "handlers", []):
                yield from _launching_lines(handler.body)
        elif _gives_work([statement]):
            yield statement.lineno


def _head(statement: ast.stmt) -> list[ast.AST]:
    """Return what a compound statement evaluates itself: the condition, the series, the contexts."""
    held = [getattr(statement, name, None) for name in ("test", "iter", "subject")]
    return [part for part in (*held, *getattr(statement, "items", [])) if part is not None]


def _gives_work(nodes: Iterable[ast.AST]) -> bool:
    return any(
        (isinstance(part, ast.Call) and not _is_host_only(part.func))
        or (isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult))
        for node in nodes
        for part in ast.walk(node)
    )


def _is_host_only(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in _HOST_METHODS
    return isinstance(function, ast.Name) and function.id in _HOST_METHODS | _HOST_FUNCTIONS
