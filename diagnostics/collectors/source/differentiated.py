"""Finds the line that computes what a script differentiates."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from types import FrameType

from diagnostics.collectors.shared.script_line import column_of
from diagnostics.facts.where import Where, shorten

from .scopes import FUNCTIONS, LOOPS, is_read, own_nodes, targets


def differentiated_at(frame: FrameType) -> Where | None:
    """Return the line that computes the value whose gradients a frame's line asks for.

    Args:
        frame: of the script, at ``loss.backward()``, ``scaler.scale(loss).backward()``,
            ``accelerator.backward(loss)``, …

    Returns:
        None unless the innermost loop or function around that line computes one of the names in it exactly once
        before. Others, such as ``scaler``, are assigned outside the loop.
    """
    file, line = frame.f_code.co_filename, frame.f_lineno
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # changed since, or of another language
        return None
    found = list(_computed(tree, line))
    if len(found) != 1:
        return None
    begin, last = found[0].lineno, _end(found[0])
    columns = column_of(file, begin, found[0].col_offset), column_of(file, last, found[0].end_col_offset or 0)
    return Where(shorten(file), begin, frame.f_code.co_name, last, *columns)


def _computed(tree: ast.Module, line: int) -> Iterator[ast.expr]:
    """Yield what the loop or function around a line assigns, before it, to the names in its call of backward."""
    around = [node for node in ast.walk(tree) if isinstance(node, (*LOOPS, *FUNCTIONS)) and _covers(node, line)]
    nodes = list(own_nodes(max(around, key=lambda node: node.lineno, default=tree)))
    passes = [node for node in nodes if isinstance(node, ast.Call) and _covers(node, line) and _is_backward(node)]
    names = {name.id for call in passes for name in ast.walk(call) if isinstance(name, ast.Name)}
    for node in nodes:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or node.lineno > line:
            continue
        given = names.intersection(targets(node))
        if given and not any(is_read(part, name) for part in ast.walk(node.value) for name in given):
            yield node.value


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _covers(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= _end(node)


def _end(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno
