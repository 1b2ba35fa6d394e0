"""Finds a setting that a script gives to the data set beneath two parts, which are of the same one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import LOOPS, Found, Source, dotted

from .unread_splits import parts_of_split


def find(source: Source) -> Iterator[Found]:
    """Yield for each pair: both parts, the attribute, and both values, the first of which is lost.

    Settings in a loop may be switched to and fro, and count for nothing; nor does a part that gets a data set of
    its own, as by ``part.dataset = copy.deepcopy(part.dataset)``.
    """
    for scope in source.scopes:
        nodes = scope.nodes
        in_loops = {inner for node in nodes if isinstance(node, LOOPS) for inner in ast.walk(node)}
        families = _families(nodes)
        given = {
            dotted(target)
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Attribute)
        }
        first: dict[tuple[int, str], tuple[str, str]] = {}
        for node in nodes:
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or node in in_loops:
                continue
            part, _, attribute = dotted(node.targets[0]).rpartition(".dataset.")
            if part not in families or "." in attribute or f"{part}.dataset" in given:
                continue
            value = ast.unparse(node.value)
            before = first.setdefault((families[part], attribute), (part, value))
            if before[0] != part and before[1] != value and f"{before[0]}.dataset" not in given:
                yield Found((before[0], part, attribute, before[1], value), node, scope.name)


def _families(nodes: list[ast.AST]) -> dict[str, int]:
    """Return for each name of a part a number that parts of the same data set share."""
    found: dict[str, int] = {}
    of_base: dict[str, int] = {}
    for number, node in enumerate(nodes):
        for part in parts_of_split(node):
            found[part] = number
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1:
            call = node.value
            if dotted(call.func).rpartition(".")[2] == "Subset" and call.args and (base := dotted(call.args[0])):
                found[dotted(node.targets[0])] = of_base.setdefault(base, -1 - number)
    return found
