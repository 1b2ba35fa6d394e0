"""Finds layers that were called on what a model computes, and whose results are part of no model."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.post_run import PostRunCheck
from diagnostics.collectors.keras.values import array_of
from diagnostics.facts.layers import ForgottenLayer, ForgottenLayers


class ForgottenLayersCheck(PostRunCheck):
    """Looks for trainable layers on which a functional model ends nowhere.

    A layer that some other model of the script uses is left out, as is one whose weights are not those that it was
    made with: an earlier model has learned them, and may be gone.
    """

    def facts(self) -> Iterable[ForgottenLayers]:
        """Return them together."""
        model = self.subject.model
        inside = {id(operation) for operation in _operations(model)}
        found = {id(layer): (layer, call) for layer, call in _consumers(model, inside) if _is_new(layer)}
        for other in gc.get_objects() if found else ():
            # By type: a proxy's `__class__` may do something.
            if issubclass(type(other), keras.Model) and other is not model:
                for operation in _operations(other):
                    found.pop(id(operation), None)
        shapes = {tuple(output.shape) for output in model.outputs} if found else set()
        layers = tuple(
            ForgottenLayer(
                layer.name,
                type(layer).__name__,
                sum(int(np.prod(weight.shape)) for weight in layer.trainable_variables),
                _called_on(call),
                any(tuple(output.shape) in shapes for output in _ends(call)),
            )
            for layer, call in found.values()
        )
        if layers:
            yield ForgottenLayers(layers)


def _operations(model: Any) -> list[Any]:
    """Return the layers and operations of a functional model, and of what is inside it."""
    graph = getattr(model, "_functional", None) or model  # a Sequential keeps one
    return [*(getattr(graph, "operations", None) or ()), *model._flatten_layers(include_self=False)]


def _consumers(model: Any, inside: set[int]) -> Iterator[tuple[Any, Any]]:
    """Yield the layers outside of a model that were called on what it computes, with that call."""
    if isinstance(model, keras.Sequential) or not getattr(model, "operations", None):
        return  # a Sequential is rebuilt for each layer that is added
    computed = {id(tensor) for operation in model.operations for tensor in _results(operation)}
    for operation in model.operations:
        for call in operation._outbound_nodes:
            takes = any(id(tensor) in computed for tensor in call.arguments.keras_tensors)
            if takes and id(call.operation) not in inside and isinstance(call.operation, keras.layers.Layer):
                yield call.operation, call


def _results(operation: Any) -> Iterator[Any]:
    for call in operation._inbound_nodes:
        yield from call.output_tensors


def _ends(call: Any) -> Iterator[Any]:
    """Yield the results at which the layers that follow a call end, its own if none does."""
    waiting, known = [call], {id(call)}
    while waiting:
        one = waiting.pop()
        results = {id(tensor) for tensor in one.output_tensors}
        further = [
            node
            for node in one.operation._outbound_nodes
            if any(id(tensor) in results for tensor in node.arguments.keras_tensors)
        ]
        if not further:
            yield from one.output_tensors
        waiting += [node for node in further if id(node) not in known]
        known |= {id(node) for node in further}


def _called_on(call: Any) -> str:
    return ", ".join(dict.fromkeys(node.operation.name for node in call.parent_nodes))


def _is_new(layer: Any) -> bool:
    """Whether a layer has weights, and its biases are 0, as they are made."""
    if isinstance(layer, keras.Model) or not layer.trainable_variables:
        return False
    biases = [weight for weight in layer.trainable_variables if weight.name == "bias"]
    return bool(biases) and not any(array_of(bias).any() for bias in biases)
