"""Finds an evaluation of a Keras model that was never trained, while one of the same layers was."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras.values import array_of, number_of
from diagnostics.facts.calls import ObjectLedger
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import subscribe

FEWEST = 64  # weights of a layer: the largest of fewer may be far below the bound by chance
BOUND = 0.95  # of the bound from which Keras draws the weights of a layer, that the largest of them reaches
LOADS = "model.load_weights(path)"
LAYERS = ("Dense", "Conv1D", "Conv2D", "Conv3D")  # of Keras, which may be only half imported when this is

Shapes = tuple[tuple[str, tuple[int, ...]], ...]  # name and shape of each trainable variable


@dataclass
class _Trained:
    """The latest training of models with the same variables.

    Attributes:
        training: what `facts` names it by.
        owner: of the optimizer, or the optimizer.
        iterations: its counter of steps, which outlives it: the last step comes after the last pass.
        steps: that it had made when a pass was last seen.
    """

    training: Any
    owner: weakref.ref[Any]
    iterations: Any = None
    steps: int = -1

    def count(self) -> bool:
        """Read the counter; return whether it has moved."""
        owner, before = self.owner(), self.steps
        if owner is not None:
            self.iterations = getattr(getattr(owner, "optimizer", owner), "iterations", None)
        steps = _steps(self.iterations)
        self.steps = before if steps == -1 else steps
        return self.steps != before


class UntrainedInstanceProbe:
    """Records the evaluations of models whose variables are shaped as those of a trained one, and not trained.

    Only after the last step of a training: before it, and during it, an untrained model may be a baseline.
    """

    def __init__(self, guard: FaultGuard) -> None:
        """Start listening, until `close`; `guard` runs the work."""
        self._guard = guard
        self._trained: dict[Shapes, _Trained] = {}
        self._of: IdentityMap[Any, frozenset[Shapes]] = IdentityMap()  # by variable that trainings have changed
        self._models: IdentityMap[Any, frozenset[Shapes]] = IdentityMap()  # that hold such variables
        self._assigned: IdentityMap[Any, None] = IdentityMap()
        self._counted: IdentityMap[Any, Shapes] = IdentityMap()  # by variable of an untrained one
        self._evaluated: dict[Shapes, str] = {}  # untrained ones since the latest step: the class
        self._used: set[Shapes] = set()  # evaluated as trained, or loaded, since the latest step
        self._listening = contextlib.ExitStack()
        methods = taps.evaluate, taps.predict, taps.predict_on_batch, taps.test_on_batch
        self._listening.callback(
            subscribe(
                guard.attempt,
                *((method.after, self._returned) for method in methods),  # which may have made the weights
                (taps.variable_assign.before, self._assigns),
            )
        )

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()

    def trained(self, variables: Sequence[Any], owner: Any, training: Any) -> None:
        """Record what is trained.

        Args:
            variables: trainable ones of Keras.
            owner: the optimizer, or the model that has it.
            training: what `facts` names it by.
        """
        shapes = _shapes(variables)
        if not shapes:
            return
        if not self._trained:
            self._listening.callback(subscribe(self._guard.attempt, (taps.model_call.after, self._passes)))
        self._trained[shapes] = _Trained(training, weakref.ref(owner))
        self._trained[shapes].count()
        for variable in variables:
            self._of[variable] = self._of.get(variable, frozenset()) | {shapes}
        self._models = IdentityMap()
        self._forget()

    def facts(self) -> list[tuple[Any, ObjectLedger]]:
        """Return what was found, each with its training."""
        self._look_for_steps()
        return [
            (self._trained[shapes].training, ObjectLedger(name, untrained_rows=None, loader=LOADS))
            for shapes, name in self._evaluated.items()
            if shapes not in self._used
        ]

    def _passes(self, outputs: Any, model: Any, *_arguments: Any, **_options: Any) -> None:
        symbolic = any(isinstance(part, keras.KerasTensor) for part in keras.tree.flatten(outputs))
        if tf.executing_eagerly() and not symbolic:
            self._returned(outputs, model)

    def _returned(self, _result: Any, model: Any, *_arguments: Any, **_options: Any) -> None:
        """Take a model that was evaluated."""
        if not self._trained or not model.built:
            return
        self._look_for_steps()
        trained = self._models.get(model)
        if trained is None:
            trained = frozenset[Shapes]().union(*(self._of.get(variable, ()) for variable in model.variables))
        if trained:
            self._models[model] = trained  # for the next call: an agent's model is called once a step
            self._used |= trained
            return
        variables = model.trainable_variables
        shapes = _shapes(variables)
        if shapes not in self._trained or shapes in self._used:
            return
        if any(variable in self._assigned for variable in variables) or not _is_as_initialised(model):
            self._used.add(shapes)
            return
        self._counted.update((variable, shapes) for variable in variables)
        self._evaluated[shapes] = type(model).__name__

    def _assigns(self, variable: Any, *_arguments: Any, **_options: Any) -> None:
        """Record a variable that is loaded or set; a pass before it may have been made to build the model."""
        self._assigned[variable] = None
        shapes = self._counted.get(variable)
        if shapes is not None:
            self._used.add(shapes)

    def _look_for_steps(self) -> None:
        """Forget what was evaluated before a training went on."""
        moved = [one.count() for one in self._trained.values()]
        if any(moved):
            self._forget()

    def _forget(self) -> None:
        self._evaluated.clear()
        self._used.clear()


def _shapes(variables: Sequence[Any]) -> Shapes:
    return tuple((variable.name, tuple(variable.shape)) for variable in variables)


def _steps(iterations: Any) -> int:
    """Return how many steps an optimizer has made, by its counter; -1 if that is not known."""
    try:
        return -1 if iterations is None else int(number_of(iterations))
    except NotImplementedError:  # it is being made within a function that is traced: there is no value yet
        return -1


def _is_as_initialised(model: Any) -> bool:
    """Whether the weights fill the interval from which Keras draws them, and every bias is 0."""
    kinds = tuple(getattr(keras.layers, name) for name in LAYERS)
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, kinds) and layer.trainable]
    biases = [layer.bias for layer in layers if layer.use_bias and _is(layer, "bias", keras.initializers.Zeros)]
    drawn = [layer.kernel for layer in layers if _is(layer, "kernel", keras.initializers.GlorotUniform)]
    drawn = [kernel for kernel in drawn if int(np.prod(kernel.shape)) >= FEWEST]
    return bool(biases and drawn) and not any(map(_is_any, biases)) and all(map(_is_within_bound, drawn))


def _is(layer: Any, part: str, kind: type) -> bool:
    return type(getattr(layer, f"{part}_initializer", None)) is kind


def _is_any(bias: Any) -> bool:
    return bool(np.any(array_of(bias)))


def _is_within_bound(kernel: Any) -> bool:
    """Whether a matrix is one that `GlorotUniform` draws."""
    from diagnostics.collectors.keras.internals import compute_fans

    bound = math.sqrt(6 / sum(compute_fans(kernel.shape)))
    return BOUND <= float(np.max(np.abs(array_of(kernel)))) / bound <= 1 + 1e-5
