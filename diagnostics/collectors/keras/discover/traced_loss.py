"""Reads the formula of a loss from the graph that TensorFlow traces of a step."""

from __future__ import annotations

from typing import Any

from diagnostics.facts.loss import TracedDifference

OPERATIONS = 5000  # that are looked at, in all: a graph of a large model has more, behind the difference
# What may lie between a difference and the loss: each keeps the numbers apart, or adds them up.
_BETWEEN = frozenset(
    {
        "Abs",
        "AddV2",
        "Cast",
        "DivNoNan",
        "Identity",
        "Maximum",
        "Mean",
        "Minimum",
        "Mul",
        "Neg",
        "Pow",
        "RealDiv",
        "SelectV2",
        "Sqrt",
        "Square",
        "Sum",
    }
)
_DIFFERENCES = ("Sub", "SquaredDifference")


def stretched_difference(loss: Any) -> TracedDifference | None:
    """Find a prediction (n, 1) and a target (n,), or the reverse, that the loss subtracts from each other.

    Args:
        loss: a symbolic tensor () within a function that is being traced.

    Returns:
        None if there is no such difference. What depends on no weights, but on an argument of the function, is
        the target; what depends on weights is the prediction.
    """
    waiting, seen = [loss.op], set[Any]()
    while waiting and len(seen) < OPERATIONS:
        operation = waiting.pop()
        if operation in seen:
            continue
        seen.add(operation)
        if operation.type in _DIFFERENCES:
            found = _stretched(*operation.inputs)
            if found is not None:
                return found
        elif operation.type in _BETWEEN:
            waiting += [one.op for one in operation.inputs]
    return None


def _stretched(left: Any, right: Any) -> TracedDifference | None:
    if left.shape.rank is None or right.shape.rank is None:
        return None
    shapes = [tuple(left.shape.as_list()), tuple(right.shape.as_list())]
    if sorted(map(len, shapes)) != [1, 2]:
        return None
    column, row = sorted(shapes, key=len, reverse=True)
    if column != (row[0], 1) or row[0] == 1:
        return None
    depends = [_reaches(one) for one in (left, right)]
    if sorted(weights for weights, _ in depends) != [False, True]:
        return None
    target = 0 if not depends[0][0] else 1
    if not depends[target][1]:
        return None
    return TracedDifference(prediction=shapes[1 - target], target=shapes[target])


def _reaches(tensor: Any) -> tuple[bool, bool]:
    """Say whether a tensor depends on weights, and whether on an argument of the function."""
    captured = {id(one) for one in getattr(tensor.graph, "internal_captures", ())}
    waiting, seen = [tensor.op], set[Any]()
    weights = argument = False
    while waiting and len(seen) < OPERATIONS and not weights:
        operation = waiting.pop()
        if operation in seen:
            continue
        seen.add(operation)
        if operation.type == "Placeholder":
            held = id(operation.outputs[0]) in captured
            weights |= operation.outputs[0].dtype.name == "resource"
            argument |= not held
        waiting += [one.op for one in operation.inputs]
    return weights, argument
