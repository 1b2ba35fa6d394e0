"""Gradients of a Keras model on TensorFlow, at values of its own: of a step, of a batch in parts, by position."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.checks.accumulation import Parts, Vector
from diagnostics.collectors.checks.differences import dtype_of, rounding_of
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.keras.batch import unpack
from diagnostics.collectors.keras.examine.stateless_copy import KerasCopy
from diagnostics.collectors.keras.losses import own_loss
from diagnostics.collectors.keras.model import has_weights, how_to_build
from diagnostics.collectors.keras.state import generators_of, global_states_kept
from diagnostics.collectors.shared.pipeline import StageFailed
from diagnostics.errors import InvalidInput, typed_message, what
from diagnostics.facts.array import Array
from diagnostics.facts.checks import ParameterGradient

STEP = 1e-3  # of a variable's norm, as in PyTorch
STEPS = 3


class KerasGradients:
    """Differentiates the loss of a batch by values that stand in the place of the model's variables.

    Args:
        model: compiled and built; only read.
        batch: what `fit` takes for one step: ``(x, y)`` or ``(x, y, sample_weight)``.
    """

    def __init__(self, model: keras.Model, batch: Any) -> None:
        self._model = model
        if keras.backend.backend() != "tensorflow":
            raise InvalidInput(
                f"The gradients of Keras models are checked on TensorFlow, not on {keras.backend.backend()}."
            )
        if not model.compiled or not has_weights(model):
            missing = "compiled" if not model.compiled else "built"
            raise InvalidInput(
                f"The gradients cannot be checked: the model is not {missing} yet. Call model.compile(...), and "
                f"then {how_to_build(model)}."
            )
        try:
            x, y, self._weights = unpack(batch)
        except StageFailed as reason:
            raise InvalidInput(f"The gradients cannot be checked: {reason}") from None
        self._x = keras.tree.map_structure(tf.convert_to_tensor, x)
        self._y = None if y is None else keras.tree.map_structure(tf.convert_to_tensor, y)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Restore random states and the loss on leaving."""
        with (
            global_states_kept(*generators_of(self._model)),
            own_loss(self._model),
            own_warnings_ignored(),
            own_run(),
        ):
            yield

    def parameter_names(self) -> list[str]:
        """Name the trainable variables."""
        return [variable.path for variable in self._model.trainable_variables]

    def step(self) -> list[ParameterGradient]:
        """Return the gradient of each variable in the first step, and if it lacks one, in a few more."""
        copied = self._copy(None)
        trainable, other = copied.start()
        gradients = _run(copied, trainable, other, True)
        first = [_norm(gradient) for gradient in gradients]
        later = [0.0] * len(first)
        for _ in range(STEPS - 1):
            if all(norm or now for norm, now in zip(first, later, strict=True)):
                break
            trainable = [_moved(v, g) for v, g in zip(trainable, gradients, strict=True)]
            gradients = _run(copied, trainable, other, True)
            norms = [_norm(gradient) or 0.0 for gradient in gradients]
            later = [max(old, new if math.isfinite(new) else 0.0) for old, new in zip(later, norms, strict=True)]
        return [
            ParameterGradient(
                variable.path,
                int(np.prod(variable.shape)),
                norm,
                0 if norm is None or math.isfinite(norm) else 1,
                0.0 if norm else now,
            )
            for variable, norm, now in zip(self._model.trainable_variables, first, later, strict=True)
        ]

    def rows(self) -> int:
        """Return the number of rows of the batch."""
        return int(keras.tree.flatten(self._x)[0].shape[0])

    def parts(self, count: int, batch_statistics: bool) -> Parts:
        """Cut the batch into micro-batches. Batch norm is on its running statistics, and dropout off."""
        size = self.rows()
        bounds = [round(number * size / count) for number in range(count + 1)]
        pairs = list(itertools.pairwise(bounds))

        def by_user(_accumulate: Any) -> Vector:
            raise InvalidInput(
                "accumulation(accumulate=...) takes PyTorch models. For Keras leave it out: the micro-batches are "
                "accumulated as gradient_accumulation_steps of an optimizer does."
            )

        return Parts(
            sizes=tuple(stop - start for start, stop in pairs),
            labels=None,
            whole=lambda: self._vector(None),
            part=lambda number: self._vector(pairs[number]),
            by_user=by_user,
            still=None,
            rounding=max(rounding_of(dtype_of(v)) for v in self._model.trainable_variables),
        )

    def _vector(self, rows: tuple[int, int] | None) -> Vector:
        copied = self._copy(rows)
        gradients = _run(copied, *copied.start(), False)
        return {
            variable.path: np.asarray(tf.convert_to_tensor(gradient), dtype=np.float64).ravel()
            for variable, gradient in zip(self._model.trainable_variables, gradients, strict=True)
            if gradient is not None
        }

    def _copy(self, rows: tuple[int, int] | None) -> KerasCopy:
        parts: tuple[Any, ...] = (self._x, self._y, self._weights)
        if rows is not None:
            parts = tuple(
                None if part is None else keras.tree.map_structure(lambda v: v[rows[0] : rows[1]], part)
                for part in parts
            )
        return KerasCopy(self._model, *parts)


class KerasPositions:
    """Differentiates the last answer of a Keras model by its input.

    Args:
        model: built; only called.
        output: picks what is differentiated out of what the model returns; None for the last position, or all.
    """

    def __init__(self, model: keras.Model, output: Callable[[Any], Any] | None) -> None:
        self._model, self._output = model, output

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Restore random states on leaving."""
        with global_states_kept(*generators_of(self._model)), own_warnings_ignored(), own_run():
            yield

    def of_array(self, array: Any) -> Any:
        """Convert an array of NumPy."""
        return tf.constant(array)

    def profile(self, inputs: Any, length: int) -> Array:
        """Return float64 (length,): the norm of the gradient at each position; see `TorchPositions`."""
        leaf = tf.convert_to_tensor(inputs)
        if not leaf.dtype.is_floating or leaf.shape.rank < 2 or leaf.shape[1] != length:
            raise InvalidInput(
                f"through_time() was given {what(inputs)} for a Keras model. It takes floats of shape (rows, "
                "positions, features); for token ids pass the part of the model behind its Embedding."
            )
        try:
            with tf.GradientTape() as tape:
                tape.watch(leaf)
                answer = self._model(leaf, training=False)
                answer = answer if self._output is None else self._output(answer)
                if self._output is None and answer.shape.rank > 2 and answer.shape[1] == length:
                    answer = answer[:, -1]
                weights = np.random.default_rng(0).standard_normal(tuple(answer.shape))
                total = tf.reduce_sum(answer * tf.cast(weights, answer.dtype))
        except Exception as error:
            raise InvalidInput(
                f"through_time() ran the model on a sequence of {length}, and that raised {typed_message(error)}."
            ) from error
        gradient = tape.gradient(total, leaf)
        gradient = np.zeros(leaf.shape) if gradient is None else np.asarray(gradient, dtype=np.float64)
        norms: Array = np.linalg.norm(np.moveaxis(gradient, 1, 0).reshape(length, -1), axis=1)
        return norms


def _run(copied: KerasCopy, trainable: Any, other: Any, training: bool) -> list[Any]:
    try:
        return copied.gradients((trainable, other), training)
    except Exception as error:
        raise InvalidInput(
            f"The gradients cannot be checked: computing the loss of this batch raised {typed_message(error)}. "
            "Pass what fit takes for one step: (x, y) or (x, y, sample_weight)."
        ) from error


def _norm(gradient: Any) -> float | None:
    if gradient is None:
        return None
    return float(np.linalg.norm(np.asarray(tf.convert_to_tensor(gradient), dtype=np.float64)))


def _moved(value: Any, gradient: Any) -> Any:
    """Take a small step against the gradient."""
    norm = _norm(gradient)
    if not norm or not math.isfinite(norm):
        return value
    size = float(tf.norm(tf.cast(value, tf.float64))) or 1.0
    return value - tf.cast(STEP * size / norm, value.dtype) * tf.convert_to_tensor(gradient)
