"""Reads the variables of a Keras model in one call, and measures how a step changes them."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from diagnostics.collectors.shared.equal_units import MAX_NUMBERS, Read
from diagnostics.facts.array import Array

from .values import current

LIMIT = 512 * 2**20  # bytes of weights; a model that is larger is not copied


class Weights:
    """The variables of a model, trainable ones first, and the layers that these belong to; it keeps none alive.

    Args:
        trainable: those that an optimizer changes.
        others: those that it does not, and that a step needs as well.
        name: of the model, which owns variables without a layer.

    Attributes:
        trainable: how many of them are, from the front.
        names: paths of the trainable ones.
        layers: the layers that own a trainable variable, in order, by path.
        small: whether they are few enough to be kept beside the model.
    """

    def __init__(self, trainable: Sequence[Any], others: Sequence[Any] = (), name: str = "") -> None:
        variables = [*trainable, *others]
        self._held = [weakref.ref(variable) for variable in variables]
        self.trainable = len(trainable)
        self.names = tuple(_path(variable, number) for number, variable in enumerate(trainable, 1))
        owners = [path.rpartition("/")[0] or name or path for path in self.names]
        self.layers = tuple(dict.fromkeys(owners))
        nbytes = sum(int(np.prod(v.shape)) * tf.as_dtype(v.dtype).size for v in variables)
        self.small = nbytes <= LIMIT
        self._of_variable = np.array([self.layers.index(owner) for owner in owners], dtype=np.int64)
        self._on_device = compiled(self._measure_on_device)

    @property
    def variables(self) -> list[Any]:
        """All of them; None in the place of one that is gone."""
        return [held() for held in self._held]

    @property
    def are_there(self) -> bool:
        """Whether the script still holds every variable."""
        return all(held() is not None for held in self._held)

    def read(self) -> list[Any]:
        """Return the values. They share memory with the variables until these are next written to."""
        return [current(variable) for variable in self.variables]

    def measure(self, before: list[Any]) -> tuple[Array, Array]:
        """Compare with values read before a step.

        Returns:
            By layer, float32 (layers,): |update| / |weight|, as in `UpdateHistory`, and |weight| before. Not
            finite where one of the two was not.
        """
        if not self.trainable:
            return np.zeros(0, np.float32), np.zeros(0, np.float32)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            norms = self._norms(before[: self.trainable]).astype(np.float64)
            weights, changes = (self._by_layer(row) for row in norms)
            return np.where(changes == 0, 0.0, changes / weights).astype(np.float32), weights.astype(np.float32)

    def gradient_norms(self, gradients: Sequence[Any]) -> Array:
        """Return the L2 norm of the gradients by layer, float32 (layers,); 0 where there is none.

        Args:
            gradients: one for each trainable variable, a tensor, `tf.IndexedSlices` or None. Of slices, rows that
                stand there twice are not added up first.
        """
        values = [g.values if isinstance(g, tf.IndexedSlices) else g for g in gradients]
        norms = [0.0 if value is None else tf.norm(tf.cast(value, tf.float32)) for value in values]
        with np.errstate(over="ignore", invalid="ignore"):
            return self._by_layer(tf.stack(norms).numpy().astype(np.float64)).astype(np.float32)

    def _norms(self, before: list[Any]) -> Array:
        """Return |weight| and |update| by variable, (2, trainable)."""
        if tf.config.list_logical_devices("GPU"):  # where the weights are; only their norms are copied
            measured: Array = self._on_device(before).numpy()
            return measured
        rows = []
        for old, variable in zip(before, self.variables, strict=False):
            first, then = (np.asarray(values).reshape(-1) for values in (old, current(variable)))
            if first.dtype not in (np.float32, np.float64):  # half precision, and integers
                first, then = first.astype(np.float32), then.astype(np.float32)
            rows.append((np.linalg.norm(first), np.linalg.norm(then - first)))
        return np.array(rows).T

    def _measure_on_device(self, before: list[Any]) -> Any:
        rows = []
        for old, variable in zip(before, self.variables, strict=False):
            first = tf.cast(old, tf.float32)
            change = tf.cast(current(variable), tf.float32) - first
            rows.append(tf.stack([tf.norm(first), tf.norm(change)]))
        return tf.stack(rows, axis=1)

    def _by_layer(self, norms: Array) -> Array:
        squares: Array = np.bincount(self._of_variable, np.square(norms), minlength=len(self.layers))
        return np.sqrt(squares)


def units_of(kernel: Any) -> Read | None:
    """Return what reads the units of a kernel (..., units), a variable or a tensor; None if it has none."""
    shape, value = tuple(kernel.shape), current(kernel)
    if len(shape) < 2 or shape[-1] < 2 or not 0 < np.prod(shape) <= MAX_NUMBERS or not value.dtype.is_floating:
        return None

    def read(count: int | None) -> Array:
        return np.moveaxis(np.asarray(tf.cast(current(kernel)[..., :count], tf.float32)), -1, 0)

    return read


def _path(variable: Any, number: int) -> str:
    """Return the path of a variable of Keras; the name of one of TensorFlow, or its number if it has none."""
    if hasattr(variable, "path"):
        return str(variable.path)
    name = str(variable.name).partition(":")[0]
    return f"variable {number}" if name == "Variable" else name


def compiled(function: Any) -> Any:
    """Compile a function of no arguments, or of tensors, that is called at every step."""
    made: Any = tf.function(function, autograph=False)
    made._omit_frequent_tracing_warning = True  # each fit retraces, which is no mistake of the user's
    return made


def not_finite(names: tuple[str, ...], values: list[Any]) -> tuple[str, ...]:
    """Name the values that hold NaN or inf."""
    return tuple(
        name
        for name, value in zip(names, values, strict=False)
        if value.dtype.is_floating and not bool(tf.reduce_all(tf.math.is_finite(value)))
    )
