"""A Keras model that can be asked again about any rows of one batch, with values of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.values import current

from .kept_batch import KeptBatch

Inputs = Mapping[str, np.ndarray]


class OutOfTime(Exception):
    """The time for these measurements is over."""


class Unclear(Exception):
    """This cannot be measured; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What a model returned.

    Attributes:
        main: the first tensor of floating point, float32.
        others: the others.
    """

    main: np.ndarray
    others: Sequence[np.ndarray] = field(default_factory=list)

    def change(self, other: Answer) -> float:
        """Return the largest absolute difference of any two values; infinity where the shapes differ."""
        pairs = list(zip((self.main, *self.others), (other.main, *other.others), strict=True))
        if any(one.shape != two.shape for one, two in pairs):
            return float("inf")
        return max(float(np.abs(one - two).max()) for one, two in pairs if one.size)


class KerasSubject:
    """Asks a model whose variables it replaces by values of the same size: nothing of the model changes.

    Args:
        model: compiled, built; only read.
        kept: rows of a batch.
        deadline: of `time.monotonic`, after which `ask` raises.

    Attributes:
        variables: of the model, the trainable ones first.
        inputs: of the batch, by name.
        declared: whether the model names its inputs one by one, as those of the functional API do.
        target: None if not known.
        adds_losses: whether a call was seen to add a loss, of which the inputs may be a part.
    """

    def __init__(self, model: keras.Model, kept: KeptBatch, deadline: float = float("inf")) -> None:
        self.model, self.target, self._deadline = model, kept.target, deadline
        self._structure, self.weighted = kept.structure, kept.weighted
        self._takes_training = getattr(model, "_call_has_training_arg", True)
        self.variables = [*model.trainable_variables, *model.non_trainable_variables]
        self._trainable = len(model.trainable_variables)
        names = _names(model, kept)
        self.declared = names is not None
        self.inputs = dict(zip(names or map(str, range(len(kept.inputs))), kept.inputs, strict=True))
        self.adds_losses = False

    def values(self) -> list[Any]:
        """Return the values that the model has: of the trainable variables first."""
        return [current(variable) for variable in self.variables]

    def other_values(self, noise: float) -> list[Any]:
        """Return values with noise on the trainable ones, relative to the size of each."""
        generator, values = np.random.default_rng(0), self.values()
        for place, value in enumerate(values[: self._trainable]):
            if value.dtype.is_floating:
                size = float(np.asarray(tf.cast(value, tf.float32)).std()) or 1.0
                added = generator.normal(size=value.shape) * noise * size
                values[place] = value + tf.cast(added, value.dtype)
        return values

    def ask(self, inputs: Inputs, *, training: bool = False, values: list[Any] | None = None) -> Answer:
        """Run the model on these inputs; generators of random numbers begin from where they are each time.

        Raises:
            OutOfTime: the deadline is over.
            Unclear: no tensor of floating point was returned.
        """
        given = self.outputs(inputs, training=training, values=values)
        arrays = [np.asarray(tf.cast(part, tf.float32)) for part in given]
        if not arrays or not arrays[0].ndim:
            raise Unclear("the model returns no tensor of floating point with an axis")
        return Answer(arrays[0], arrays[1:])

    def outputs(
        self, inputs: Inputs, *, training: bool = False, values: list[Any] | None = None
    ) -> list[tf.Tensor]:
        """Run the model as `ask` does, and return its tensors of floating point, which a tape may follow.

        Raises:
            OutOfTime: the deadline is over.
        """
        if time.monotonic() > self._deadline:
            raise OutOfTime
        x = keras.tree.pack_sequence_as(self._structure, [tf.convert_to_tensor(v) for v in inputs.values()])
        pairs = list(zip(self.variables, self.values() if values is None else values, strict=True))
        with keras.StatelessScope(state_mapping=pairs, collect_losses=True) as scope:
            outputs = self.model(x, training=training) if self._takes_training else self.model(x)
        self.adds_losses = self.adds_losses or bool(scope.losses)
        return [part for part in keras.tree.flatten(outputs) if tf.is_tensor(part) and part.dtype.is_floating]


def _names(model: keras.Model, kept: KeptBatch) -> list[str] | None:
    """Return the names of the inputs where the model has declared each; None if not."""
    declared = getattr(model, "inputs", None)
    if not isinstance(declared, list) or len(declared) != len(kept.inputs):
        return None
    if isinstance(kept.structure, Mapping):
        kind: Any = type(kept.structure)  # an ordered one is flattened in its order, others by their names
        names: list[str] = keras.tree.flatten(kind((name, name) for name in kept.structure))
        return names if set(names) == {tensor.name for tensor in declared} else None
    if not _is_flat(kept.structure):
        return None
    named = (tensor.name for tensor in declared)  # by Keras, where the user gave no name
    return [str(n) if name.startswith("keras_tensor") else name for n, name in enumerate(named)]


def _is_flat(structure: Any) -> bool:
    parts = structure if isinstance(structure, list | tuple) else [structure]
    return not any(map(keras.tree.is_nested, parts))
