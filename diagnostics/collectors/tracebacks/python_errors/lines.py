"""Reads which expression a line of source uses."""

from __future__ import annotations

import ast
import re
from contextlib import suppress

_EXPRESSION = r"(?<!\w)(?P<held>[A-Za-z_]\w{0,99}(?:\.\w{1,99}|\[[^\[\]]{0,60}\]|\([^()]{0,60}\)){0,20})"

_NESTED = re.compile(r"(?<![\w.])(?P<held>[A-Za-z_][\w.]{0,60})\[[A-Za-z_][\w.]{0,60}\[[^\[\]]{1,40}\]\]")
_BY_VARIABLE = re.compile(r"(?<![\w.])(?P<held>[A-Za-z_][\w.]{0,60})\[(?P<key>[A-Za-z_]\w{0,60})\]")


def expression_before(line: str, ending: str) -> str | None:
    """Return the one expression of a line that stands before `ending`, a pattern; None if none, or several."""
    names = {found["held"] for found in re.finditer(f"{_EXPRESSION}{ending}", line)}
    return names.pop() if len(names) == 1 else None


def outermost(line: str) -> str | None:
    """Return what is indexed by an index of its own, ``a`` in ``a[b[i]]``, or both of ``a[key] == b[key]``.

    Returns:
        None if the line shows neither.
    """
    nested = {found["held"] for found in _NESTED.finditer(line)}
    if len(nested) == 1:
        return nested.pop()
    by_key: dict[str, list[str]] = {}
    for found in _BY_VARIABLE.finditer(line):
        by_key.setdefault(found["key"], []).append(found["held"])
    same = [names for names in by_key.values() if len(set(names)) == 2]
    return " or ".join(dict.fromkeys(same[0])) if len(same) == len(by_key) == 1 else None


_PARTS = {"split": 2, "splitext": 2, "splitdrive": 2, "partition": 3, "rpartition": 3}
"""How many parts calls of `os.path`, and of strings, always give."""


def parsed(line: str) -> ast.AST | None:
    """Parse a line of source, the head of a block included; None if it goes on in other lines."""
    for text in (line, f"{line} pass", f"if 1: pass\n{line} pass", f"try: pass\n{line} pass"):
        with suppress(SyntaxError, ValueError, RecursionError):
            return ast.parse(text.strip())
    return None


def indexed(line: str) -> set[str]:
    """Return what a line takes items from by a number that may be too large.

    `os.path.split(path)[1]` and `name.split(".")[0]` are always there, and neither a slice nor a key is a number.
    """
    tree = parsed(line)
    nodes = () if tree is None else ast.walk(tree)
    found = [node for node in nodes if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)]
    return {ast.unparse(node.value) for node in found if not _is_there(node)}


def _is_there(node: ast.Subscript) -> bool:
    index = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
    number = index.value if isinstance(index, ast.Constant) else None
    call = node.value.func if isinstance(node.value, ast.Call) else None
    if isinstance(number, str) or not isinstance(call, ast.Attribute) or not isinstance(number, int):
        return isinstance(number, str)
    of_string = call.attr == "split" and not ast.unparse(call.value).endswith("path")
    last = number - 1 if index is not node.slice else number
    return last < (1 if of_string else _PARTS.get(call.attr, 0))
