"""Finds a best model that is kept under a second name, without a copy, while the loop trains on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from diagnostics.collectors.source.scopes import LOOPS, MODEL, Found, Source, calls, dotted, is_read, targets

BEST = re.compile(r"best", re.IGNORECASE)
STOPS = re.compile(r"early|stop|checkpoint|best|keeper|tracker", re.IGNORECASE)
TRAINS = re.compile(r"backward$|step$|train|fit$|epoch|update$|optimi[sz]e")
COPIES = ("clone", "deepcopy", "copy", "cpu", "numpy", "tolist", "to")  # `cpu` and `to` may not copy, but often do
WEIGHTS = ("parameters", "named_parameters", "state_dict", "items", "values")


def find(source: Source) -> Iterator[Found]:
    """Yield the second name and the model of each; of a container without copies, what it is made of."""
    for scope in source.scopes:
        nodes = scope.nodes
        for loop in (node for node in nodes if isinstance(node, LOOPS)):
            for condition in _conditions(loop):
                for statement in condition.body:
                    found = _kept(statement, source.models, _keeps_best(condition))
                    if found is not None and _changes_later(source, loop, condition, *found, nodes):
                        by_name = not _keeps_best(condition) or found[1] not in source.models
                        yield Found(found, statement, scope.name, by_name)
    yield from _kept_by_early_stopping(source)


def _kept_by_early_stopping(source: Source) -> Iterator[Found]:
    """Yield what a class for early stopping keeps of the model that it is called with in each epoch."""
    for kind in (node for node in source.nodes if isinstance(node, ast.ClassDef) and STOPS.search(node.name)):
        within = set(map(id, ast.walk(kind)))
        outside = [node for node in source.nodes if id(node) not in within]
        for method in (
            node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name != "__init__"
        ):
            given = {argument.arg for argument in method.args.args[1:]}
            for statement in (node for node in ast.walk(method) if isinstance(node, ast.Assign)):
                kept, model = _kept(statement, source.models) or ("", "")
                name = kept.removeprefix("self.")
                if model not in given or name == kept or any(model in targets(node) for node in ast.walk(method)):
                    continue
                reads = [n for n in outside if isinstance(n, ast.Attribute) and n.attr == name]
                loads = [call for node in outside for call in calls(node) if _loads(call)]
                if any(isinstance(n.ctx, ast.Load) for n in reads) and not loads:
                    by_name = model not in source.models
                    yield Found((kept, model), statement, f"{kind.name}.{method.name}", by_name)


def _conditions(loop: ast.AST) -> Iterator[ast.If]:
    """Yield the `if` statements of a loop, without those of loops within."""
    for child in ast.iter_child_nodes(loop):
        if isinstance(child, ast.If):
            yield child
        if not isinstance(child, (*LOOPS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _conditions(child)


def _keeps_best(condition: ast.If) -> bool:
    """Whether a branch keeps what its condition compared, as the best so far."""
    compared = {
        name
        for node in ast.walk(condition.test)
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if (name := dotted(side))
    }
    return any(compared & set(targets(statement)) for statement in condition.body)


def _kept(statement: ast.stmt, models: frozenset[str], is_best: bool = False) -> tuple[str, str] | None:
    """Return what a statement keeps under which name; None if it keeps no model, or a copy.

    Args:
        statement: in a branch.
        models: names of models.
        is_best: whether what is kept there is known to be the best.
    """
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
    for place, given in pairs:
        kept, model = dotted(place), dotted(given)
        if not kept or not (is_best or BEST.search(kept.rpartition(".")[2])):
            continue
        if (model in models or MODEL.search(model.rpartition(".")[2])) and not BEST.search(model):
            return kept, model
        held = _weights_held(given)
        if held:
            return kept, held
    return None


def _weights_held(value: ast.expr) -> str:
    """Return the model whose weights a list or dict holds without copies; empty for anything else."""
    if isinstance(value, ast.Call) and dotted(value.func) in ("list", "dict", "tuple") and len(value.args) == 1:
        return _model_of(value.args[0])
    if not isinstance(value, ast.ListComp | ast.DictComp) or len(value.generators) != 1:
        return ""
    made = value.value if isinstance(value, ast.DictComp) else value.elt
    if any(dotted(call.func).rpartition(".")[2] in COPIES or not dotted(call.func) for call in calls(made)):
        return ""
    return _model_of(value.generators[0].iter)


def _model_of(weights: ast.expr) -> str:
    """Return the model that ``model.parameters()`` or ``model.state_dict().items()`` asks."""
    asked = 0
    while isinstance(weights, ast.Call) and isinstance(weights.func, ast.Attribute) and not weights.args:
        if weights.func.attr not in WEIGHTS:
            return ""
        asked += weights.func.attr in WEIGHTS[:3]
        weights = weights.func.value
    return dotted(weights) if asked else ""


def _changes_later(
    source: Source, loop: ast.AST, condition: ast.If, kept: str, model: str, nodes: list[ast.AST]
) -> bool:
    """Whether the loop trains the model on after it was kept, and what was kept is used after the loop."""
    within = list(ast.walk(loop))
    if any(isinstance(node, ast.Break | ast.Return) for one in condition.body for node in ast.walk(one)):
        return False
    if any(model in targets(node) for node in within):  # another model in each round
        return False
    if not any(TRAINS.search(dotted(call.func).rpartition(".")[2]) for call in calls(loop)):
        return False
    inside = set(map(id, within))
    after = [node for node in nodes if id(node) not in inside and getattr(node, "lineno", 0) > _end(loop)]
    if "." in kept:  # an attribute may be read in any other method
        after = [node for node in source.nodes if id(node) not in inside]
    if any(isinstance(node, ast.Call) and _loads(node) for node in [*after, *within]):
        return False
    return any(is_read(node, kept) for node in after)


def _loads(call: ast.Call) -> bool:
    """Whether weights are loaded from elsewhere: then a second name may be no more than that."""
    return dotted(call.func).rpartition(".")[2] in ("load_state_dict", "load", "load_model", "load_checkpoint")


def _end(loop: ast.AST) -> int:
    return int(getattr(loop, "end_lineno", 0) or 0)
