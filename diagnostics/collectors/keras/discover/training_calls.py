"""Counts a script's calls of a fitted Keras model in training mode, after its `fit`."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.facts.calls import TrainingModeCalls
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import subscribe

MOST = 64  # calls whose inputs are compared
NUMBERS = 16  # of an input, for that


@dataclass
class _Calls:
    training: Any
    passes: int = 0
    rows: int = 0
    inputs: list[bytes] = field(default_factory=list)
    found: TrainingModeCalls | None = None


class TrainingCalls:
    """Listens to the calls of models whose `fit` has ended. Only the calls since the last evaluation count."""

    def __init__(self, guard: FaultGuard) -> None:
        """Prepare; `guard` runs the work."""
        self._guard = guard
        self._calls: IdentityMap[Any, _Calls] = IdentityMap()
        self._all: list[_Calls] = []
        self._listening = contextlib.ExitStack()
        self._listens = False

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()

    def fit_begins(self, model: Any) -> None:
        """Forget the calls of a model that is trained again."""
        if (calls := self._calls.pop(model, None)) is not None:
            self._all.remove(calls)

    def fit_ended(self, model: Any, training: Any) -> None:
        """Count the calls of a model from now on; `training` is what `facts` names it by."""
        if not _layers(model):
            return
        self._calls[model] = calls = _Calls(training)
        self._all.append(calls)
        if not self._listens:
            self._listens = True
            methods = taps.evaluate, taps.predict, taps.predict_on_batch, taps.test_on_batch
            evaluations = [(method.before, self._evaluated) for method in methods]
            self._listening.callback(
                subscribe(self._guard.attempt, (taps.model_call.after, self._called), *evaluations)
            )

    def facts(self) -> list[tuple[Any, TrainingModeCalls]]:
        """Return what was found, each with its training."""
        return [(one.training, one.found) for one in self._all if one.found is not None]

    def _evaluated(self, model: Any, *_arguments: Any, **_options: Any) -> None:
        if (calls := self._calls.get(model)) is not None:
            calls.passes, calls.rows, calls.found = 0, 0, None
            calls.inputs.clear()

    def _called(self, outputs: Any, model: Any, *arguments: Any, training: Any = None, **_options: Any) -> None:
        calls = self._calls.get(model)
        if calls is None or not arguments or not tf.executing_eagerly():
            return
        if any(isinstance(part, keras.KerasTensor) for part in keras.tree.flatten(outputs)):
            return
        if training is not True:
            self._evaluated(model)
            return
        from diagnostics.collectors.keras.internals import record

        if record.could_possibly_record():
            return
        given = keras.tree.flatten(arguments[0])[0]
        rows = int(given.shape[0]) if len(getattr(given, "shape", ())) else 0
        calls.passes, calls.rows = calls.passes + 1, calls.rows + rows
        if rows and len(calls.inputs) < MOST:
            calls.inputs.append(np.asarray(given[rows // 2]).reshape(-1)[:NUMBERS].tobytes())
        layers = _layers(model)
        calls.found = TrainingModeCalls(
            calls.passes,
            calls.rows,
            len(set(calls.inputs)) < len(calls.inputs),
            tuple(layer.name for layer in layers),
            tuple(isinstance(layer, keras.layers.BatchNormalization) for layer in layers),
        )


def _layers(model: Any) -> list[Any]:
    """Return the layers that behave differently in training mode; frozen batch norm does not."""
    layers = model._flatten_layers(include_self=False)
    return [
        layer
        for layer in layers
        if (isinstance(layer, keras.layers.BatchNormalization) and layer.trainable)
        or (isinstance(layer, keras.layers.Dropout) and layer.rate > 0)
    ]
