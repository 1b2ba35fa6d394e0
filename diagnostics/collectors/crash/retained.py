"""Finds graphs of many batches, and models of earlier trainings, that variables in the frames of a crash keep.

A tensor that was computed from parameters holds the graph of its computation, and until `backward` has passed the
graph holds the activations. A list of such tensors, or a running sum of them, holds those of every batch.

A `History`, which Keras' `fit` returns, references its model, and so its weights and its optimizer's state. A
search over settings that collects one for each setting keeps all of its models, and `clear_session` cannot free
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Literal

from diagnostics.collectors.pytorch.saved_tensors import saved, saved_names
from diagnostics.collectors.shared.arrays import is_tensor
from diagnostics.facts.crash.memory import KeptMemory

from .frames import Crash, Recognisers
from .model_memory import is_keras_model, keras_present
from .out_of_memory import RECOGNISERS as MEMORY

RECOGNISERS = Recognisers()

FEWEST_GRAPHS = 10  # a step with several losses, or gradients accumulated over some batches, keeps fewer
FEWEST_MODELS = 2  # beside the one in training


@RECOGNISERS.asked
def _kept(crash: Crash) -> KeptMemory | None:
    if not crash.facts.live or not any(recognise(Crash(crash.facts)) for recognise in MEMORY):
        return None
    graphs = (_measured(name, nodes) for name, nodes in _collections(crash))
    found = [kept for kept in (*graphs, *_models(crash)) if kept is not None]
    return max(found, key=lambda kept: kept.size, default=None)


def _collections(crash: Crash) -> Iterator[tuple[str, list[Any]]]:
    """Yield, by name, the graphs that one variable of the user's holds: a series of tensors, or a running sum."""
    for name, value in chain.from_iterable(variables.items() for variables in crash.own()):
        if is_tensor(value):
            yield name, _summands(value.grad_fn)
        elif isinstance(value, Mapping):
            for key, part in value.items():
                yield f"{name}[{key!r}]", _graphs_in(part)
        else:
            yield name, _graphs_in(value)


def _graphs_in(series: Any) -> list[Any]:
    if not isinstance(series, list | tuple) and type(series).__name__ != "deque":
        return []
    return [part.grad_fn for part in series if is_tensor(part) and part.grad_fn is not None]


def _summands(node: Any) -> list[Any]:
    """Take a running sum apart: `total = total + loss` is an addition of an addition of …"""
    found: list[Any] = []
    while node is not None and type(node).__name__ == "AddBackward0":
        rest, last = ([*(parent for parent, _ in node.next_functions), None, None])[:2]
        if type(rest).__name__ != "AddBackward0" and type(last).__name__ == "AddBackward0":
            rest, last = last, rest
        found += [] if last is None else [last]
        node = rest
    return [*found, node] if found and node is not None else found


def _measured(name: str, nodes: list[Any]) -> KeptMemory | None:
    """Measure what the graphs hold; None if they are few, identical, or freed by `backward`."""
    if len(nodes) < FEWEST_GRAPHS:
        return None
    first, last = _graph(nodes[0]), _graph(nodes[-1])
    if first & last:
        return None  # parts of one computation, as the outputs of a recurrent layer's steps are
    each = min(_saved_bytes(first), _saved_bytes(last))
    return KeptMemory(name, "graphs", len(nodes), each) if each else None


def _graph(node: Any) -> set[Any]:
    """Return the nodes of a graph, without those of parameters, which all graphs of a model share."""
    from diagnostics.collectors.pytorch.loss_graph import graph_nodes

    return {part for part in graph_nodes(node) if type(part).__name__ != "AccumulateGrad"}


def _saved_bytes(graph: set[Any]) -> int:
    """Add up the activations that a graph holds, each memory once; 0 after `backward` has freed them."""
    parents = {parent for node in graph for parent, _ in node.next_functions}
    weights = {_memory(parent.variable) for parent in parents if type(parent).__name__ == "AccumulateGrad"}
    sizes: dict[int, int] = {}
    for node in graph:
        for name in saved_names(node):
            tensor = saved(node, name)
            if is_tensor(tensor) and _memory(tensor) not in weights:
                sizes[_memory(tensor)] = tensor.untyped_storage().nbytes()
    return sum(sizes.values())


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _models(crash: Crash) -> Iterator[KeptMemory | None]:
    # Those that are called in the crash, and those that the user's frames name directly.
    running = (value for variables in crash.inward() for value in variables.values() if is_keras_model(value))
    in_training = {id(weight) for model in running for weight in model.weights}
    for name, value in chain.from_iterable(variables.items() for variables in crash.own()):
        if isinstance(value, Mapping | list | tuple):
            yield _models_of(name, list(value.values() if isinstance(value, Mapping) else value), in_training)


def _models_of(name: str, parts: list[Any], in_training: set[int]) -> KeptMemory | None:
    """Add up what the compiled models hold that are not in training; None if they are few."""
    kind: Literal["models", "histories"] = "histories" if any(_is_history(part) for part in parts) else "models"
    reached = [part.model if _is_history(part) else part for part in parts]
    models = {id(model): model for model in reached if is_keras_model(model)}
    sizes = [
        keras_present(model)
        for model in models.values()
        if getattr(model, "optimizer", None) is not None
        and not in_training.intersection(id(weight) for weight in model.weights)
    ]
    return KeptMemory(name, kind, len(sizes), min(sizes)) if len(sizes) >= FEWEST_MODELS else None


def _is_history(value: Any) -> bool:
    return type(value).__name__ == "History" and hasattr(value, "history") and hasattr(value, "model")
