"""Finds targets that are cut to the length of inputs that were filtered, row by row."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import Found, Source, calls, dotted, names_in, targets

DROPS = ("dropna", "drop_duplicates", "query")
TRUTHS = ("isnan", "isfinite", "isna", "notna", "isnull", "notnull", "all", "any", "isin", "logical_and")
PAIRING = re.compile(r"^zip$|Dataset$")


def find(source: Source) -> Iterator[Found]:
    """Yield inputs, targets, and the statement that pairs them."""
    for scope in source.scopes:
        nodes = [node for node in scope.nodes if isinstance(node, ast.stmt | ast.expr)]
        assigned = [node for node in nodes if isinstance(node, ast.Assign)]
        masks = {name for node in assigned if _is_truth(node.value) for name in targets(node)}
        for filtered in assigned:
            inputs = next(iter(targets(filtered)), "")
            if len(list(targets(filtered))) != 1 or not _filters(filtered.value, inputs, masks):
                continue
            for node in nodes:
                if node.lineno > filtered.lineno or (
                    node.lineno == filtered.lineno and node.col_offset > filtered.col_offset
                ):
                    cut = _cut(node, inputs) or _paired(node, inputs, assigned, filtered)
                    if cut and not _is_filtered(cut, assigned, masks):
                        yield Found((inputs, cut, ast.unparse(node)[:60]), node, scope.name)
                        break


def _is_truth(value: ast.expr) -> bool:
    """Whether an expression says of each row whether to keep it."""
    if isinstance(value, ast.Compare):
        return True
    if isinstance(value, ast.UnaryOp | ast.BinOp):
        return isinstance(getattr(value, "op", None), ast.Invert | ast.BitAnd | ast.BitOr)
    return isinstance(value, ast.Call) and any(
        getattr(call.func, "attr", dotted(call.func)) in TRUTHS for call in calls(value)
    )


def _filters(value: ast.expr, name: str, masks: set[str]) -> bool:
    """Whether a value is some of the rows of a name, chosen by what they hold."""
    if not name:
        return False
    if isinstance(value, ast.Subscript):
        owner = dotted(value.value).removesuffix(".loc")
        return owner == name and (_is_truth(value.slice) or dotted(value.slice) in masks)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return dotted(value.func.value) == name and value.func.attr in DROPS
    if isinstance(value, ast.ListComp) and len(value.generators) == 1:
        one = value.generators[0]
        return dotted(one.iter) == name and bool(one.ifs) and dotted(value.elt) == dotted(one.target) != ""
    return False


def _cut(node: ast.AST, inputs: str) -> str:
    """Return what a statement cuts to the number of the inputs; empty if it does nothing of the kind."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Subscript):
        return ""
    name, part = dotted(node.value.value).removesuffix(".iloc"), node.value.slice
    if list(targets(node)) != [name] or not isinstance(part, ast.Slice) or part.lower or part.step:
        return ""
    length = ast.unparse(part.upper) if part.upper is not None else ""
    return name if length in (f"len({inputs})", f"{inputs}.shape[0]") and name != inputs else ""


def _paired(node: ast.AST, inputs: str, assigned: list[ast.Assign], filtered: ast.Assign) -> str:
    """Return the targets that a call pairs with the inputs, if both came together before these were filtered."""
    if not isinstance(node, ast.Call) or len(node.args) != 2 or dotted(node.args[0]) != inputs:
        return ""
    name = dotted(node.args[1])
    callee = dotted(node.func).rpartition(".")[2]
    if not name or not PAIRING.search(callee) or callee == "TensorDataset":
        return ""
    before = [one for one in assigned if one.lineno < filtered.lineno]
    together = any({inputs, name} <= set(targets(one)) for one in before)
    changed = any(name in targets(one) and inputs not in targets(one) for one in assigned)
    again = any(inputs in targets(one) and filtered.lineno < one.lineno < node.lineno for one in assigned)
    return name if together and not changed and not again else ""


def _is_filtered(name: str, assigned: list[ast.Assign], masks: set[str]) -> bool:
    """Whether the targets are filtered, too."""
    return any(
        _filters(one.value, name, masks)
        or bool(masks & names_in(one.value))
        or (isinstance(one.value, ast.ListComp) and any(part.ifs for part in one.value.generators))
        for one in assigned
        if name in targets(one)
    )
