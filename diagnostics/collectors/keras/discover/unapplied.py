"""Counts gradients of a new model that a script takes from tapes, where no optimizer ever steps."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras.values import array_of
from diagnostics.collectors.keras.watch.fit_watcher import LOSS_FIELDS, sample_fields
from diagnostics.collectors.shared.history import History, training_history
from diagnostics.facts.array import Array
from diagnostics.facts.calls import StepOrderFacts
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.facts.training import TrainingHistory

MOST_BYTES = 16 * 2**20  # of the weights, whose first values are kept


class UnappliedGradients:
    """Counts the gradients of a loss by the weights of one model, the first that a tape is asked for.

    Anything that trains ends this: a step of an optimizer, a `fit`, gradients of a second model. Gradients may be
    wanted for themselves, too: of a model that has learned elsewhere, whose biases are not as they were made, and
    in a script without any optimizer.

    Attributes:
        optimizers: made by the script so far.
        passes: gradients taken; those within a `tf.function` count at each of its calls.
        forwards: the same as `passes`.
        name: what a report calls it.
        uncovered: by part, why it is not known.
        faults: always empty: the finder takes the faults.
        origin: always None.
    """

    def __init__(self) -> None:
        self.optimizers = self.passes = self.forwards = 0
        self.name = "a loop with tf.GradientTape"
        self.uncovered = {"updates": "no optimizer stepped", "gradients": "they were taken from tapes, and left"}
        self.faults: dict[str, str] = {}
        self.origin = None
        self._starts: list[tuple[Any, Array | None]] = []  # variables, with their values as soon as there are some
        self._traced = False  # whether a gradient was taken in the graph that is being traced
        self._functions: IdentityMap[Any, bool] = IdentityMap()  # in whose graph it is taken
        self._over = False

    def end(self) -> None:
        """Note that something trains."""
        self._over = True
        self._starts.clear()

    def asked(self, target: Any, sources: Any) -> None:
        """Take what a tape was asked for."""
        if self._over or not _is_loss(target):
            return
        variables = tf.nest.flatten(sources)
        if not variables or not all(isinstance(variable, keras.Variable) for variable in variables):
            return
        if not self._starts:
            size = sum(int(np.prod(v.shape)) * tf.as_dtype(v.dtype).size for v in variables)
            if size > MOST_BYTES:
                self.end()
                return
            self._starts = [(variable, None) for variable in variables]
        if not {id(variable) for variable, _ in self._starts} & set(map(id, variables)):
            self.end()
        elif tf.executing_eagerly():
            self._read_starts()
            self.passes += 1
        else:
            self._traced = True

    def called(self, function: Any) -> None:
        """Take a call of a `tf.function` by eager code, when it is over."""
        if self._traced:
            self._traced, self._functions[function] = False, True
            self._read_starts()
        if function in self._functions:
            self.passes += 1

    def is_forgotten(self) -> bool:
        """Whether the script made an optimizer, and the model is still as it was made."""
        self.forwards = self.passes
        biases = [value for variable, value in self._starts if variable.path.rpartition("/")[2] == "bias"]
        if self._over or not self.optimizers or not biases:
            return False
        as_made = all(value is not None and bool(np.isin(value, (0, 1)).all()) for value in biases)
        return as_made and all(
            value is not None and np.array_equal(value, _values(variable)) for variable, value in self._starts
        )

    def facts(self) -> tuple[Any, ...]:
        """Return the facts of a loop that is `is_forgotten`."""
        size = sum(int(np.prod(variable.shape)) for variable, _ in self._starts)
        return (
            ModelFacts("the model", "keras", num_parameters=size, num_trainable=size),
            StepOrderFacts(0, 0, 0, passes=self.passes, zeroed=self.passes, moved=False),
        )

    def read(self) -> None:
        """Do nothing: there are no steps to read."""

    def ranges(self) -> None:
        """Return None: activations are not visible."""
        return None

    def history(self) -> TrainingHistory:
        """Return a run without steps."""
        rows = History(LOSS_FIELDS).arrays()
        samples = History(sample_fields(0)).arrays()
        return training_history(rows, samples, total_steps=0, layers=(), memory_holder="process")

    def _read_starts(self) -> None:
        self._starts = [(v, _values(v) if value is None else value) for v, value in self._starts]


def _values(variable: Any) -> Array:
    return array_of(variable)


def _is_loss(target: Any) -> bool:
    return isinstance(target, tf.Tensor) and target.shape.rank == 0 and bool(target.dtype.is_floating)
