"""Reads the graph of a loss in a step that TensorFlow traces."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from diagnostics.facts.loss_graph import LEAF, LossGraph, Node, Operand, Shape

OPERATIONS = 5000  # next to the loss that are walked: a graph of a large model has more
SYNONYMS = {"AddV2": "Add", "DivNoNan": "Div", "Placeholder": LEAF, "RealDiv": "Div", "SelectV2": "Where"}


def loss_graph(loss: Any) -> LossGraph:
    """Describe the operations that depend on weights, between these and a loss.

    Args:
        loss: a symbolic tensor () within a function that is being traced.
    """
    readers: dict[Any, list[Any]] = {loss.op: []}
    waiting = deque([loss.op])
    while waiting:
        operation = waiting.popleft()
        for tensor in operation.inputs:
            if tensor.op not in readers and len(readers) < OPERATIONS:
                readers[tensor.op] = []
                waiting.append(tensor.op)
            if tensor.op in readers:
                readers[tensor.op].append(operation)
    captured = {id(one) for one in getattr(loss.graph, "internal_captures", ())}
    given = [operation for operation in readers if operation.type == "Placeholder"]
    weights = [operation for operation in given if operation.outputs[0].dtype.name == "resource"]
    arguments = [operation for operation in given if id(operation.outputs[0]) not in captured]
    trained, depending = _reached(weights, readers), _reached(arguments, readers)
    places = {operation: index for index, operation in enumerate(one for one in readers if one in trained)}

    def operand(tensor: Any) -> Operand:
        return Operand(places.get(tensor.op), _shape(tensor), is_argument=tensor.op in depending - trained)

    nodes = [
        Node(SYNONYMS.get(one.type, one.type), _shape(one.outputs[0]), tuple(map(operand, one.inputs)))
        for one in places
    ]
    return LossGraph(tuple(nodes), traced=True)


def _reached(operations: Iterable[Any], readers: Mapping[Any, list[Any]]) -> set[Any]:
    """Return operations and all that depend on them."""
    waiting, seen = list(operations), set[Any]()
    while waiting:
        operation = waiting.pop()
        if operation not in seen:
            seen.add(operation)
            waiting += readers[operation]
    return seen


def _shape(tensor: Any) -> Shape | None:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
