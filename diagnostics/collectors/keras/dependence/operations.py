"""Records the reshapes of a forward pass on TensorFlow that may combine the examples of a batch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from diagnostics.collectors.keras.internals import op_callbacks
from diagnostics.collectors.shared.dependence.subject import Operation, rows_of_numbers


@contextlib.contextmanager
def reshapes_seen(size: int) -> Iterator[list[Operation]]:
    """List the reshapes within that run at once, and are no part of a graph; `size`: number of examples."""
    seen: list[Operation] = []

    def ran(op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> None:
        name = op_type.decode() if isinstance(op_type, bytes) else op_type
        if name == "Reshape" and graph is None:
            shape, result = tuple(inputs[0].shape), tuple(outputs[0].shape)
            if shape != result:
                seen.append(Operation("reshape", "reshape", shape, -1, result, rows_of_numbers(shape, size)))

    op_callbacks.add_op_callback(ran)  # of this thread
    try:
        yield seen
    finally:
        op_callbacks.remove_op_callback(ran)


@contextlib.contextmanager
def summaries_seen(rows: int, length: int) -> Iterator[list[str]]:
    """List the layers within that return one vector for each text, or begin from a given state."""
    found: list[str] = []
    plain, within = keras.layers.Layer.__call__, [0]

    def observed(layer: Any, *arguments: Any, **options: Any) -> Any:
        whole = isinstance(layer, keras.layers.RNN | keras.layers.TimeDistributed)
        within[0] += whole
        try:
            result = plain(layer, *arguments, **options)
        finally:
            within[0] -= whole
        leaf = whole or not list(layer._flatten_layers(include_self=False, recursive=False))
        shape = tuple(getattr(keras.tree.flatten(result)[0], "shape", ()))
        sums_up = rows in shape[:2] and not {length, rows * length}.intersection(shape)
        if options.get("initial_state") is not None or (leaf and sums_up and not within[0]):
            found.append(type(layer).__name__)
        return result

    keras.layers.Layer.__call__ = observed
    try:
        yield found
    finally:
        keras.layers.Layer.__call__ = plain
