"""Trains copies of a Keras model's weights on chosen examples of its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.batch import as_array, is_one_hot, named, row_classes
from diagnostics.collectors.keras.losses import recognise_loss
from diagnostics.collectors.keras.model import last_activation
from diagnostics.collectors.keras.optimizer import full_rate, inner_optimizer, optimizer_like
from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.overfit_plan import Plan, Run
from diagnostics.collectors.shared.pipeline import CannotJudge, users_code
from diagnostics.collectors.subset_trials.answers import Answers, Seen, binary_answers, class_answers
from diagnostics.collectors.subset_trials.choice import MIN_EXAMPLES, MOST_BATCHES, Rows, digests
from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import LossKind

from .stateless_copy import KerasCopy

SEED = 0  # of every run, so that only the examples differ

Batch = tuple[Any, Any, Any]
"""Inputs, target and sample weights, as tensors; what is not there is None."""


class KerasSubsets:
    """Trains copies on chosen examples; see `diagnostics.collectors.subset_trials.choice.Subsets`.

    Args:
        model: compiled; only read.
        batch: the examined one.
        further: the batches after it.
        loss: which loss it has.
        penalty: what the model adds to it by itself.
        classes: seen in the data, empty if there are none.

    Raises:
        CannotJudge: single examples cannot be cut out of the batch.
    """

    rescalable = False  # a compiled loss takes the targets as they are

    def __init__(
        self,
        model: keras.Model,
        batch: Batch,
        further: Iterator[Batch],
        loss: Recognised,
        penalty: float,
        classes: frozenset[int],
    ) -> None:
        self._model, self._loss, self._penalty = model, loss, penalty
        self.kind: LossKind = loss.kind
        self.rate: float | None = full_rate(model.optimizer)
        self.optimizer = type(inner_optimizer(model)).__name__
        self.num_parameters = sum(int(np.prod(v.shape)) for v in model.weights)
        self.num_trainable = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
        size = _size_of(batch)
        self._batch = _gathered(batch, further, classes)
        self.rows = _rows(self._batch, classes, size if size >= MIN_EXAMPLES else _size_of(self._batch))

    def run(self, chosen: Sequence[int], plan: Plan, seen: Seen) -> Run:
        """See `Subsets.run`.

        Raises:
            UsersCodeRaised: model or loss cannot take so few examples.
        """
        index = tf.constant(list(chosen))
        x, y, weights = (_each(part, lambda values: tf.gather(values, index)) for part in self._batch)
        copy = KerasCopy(self._model, x, y, weights)

        def see(loss: float, prediction: Any) -> None:
            single = _single(prediction)
            if not seen.known_first:
                seen.start(self._recognised(loss, single, y))
            seen.add(loss, self._answers(single, y))

        tf.random.set_seed(SEED)
        with users_code():
            return copy.run(plan, lambda: optimizer_like(self._model.optimizer), see)

    def _recognised(self, value: float, prediction: Array | None, y: Any) -> Recognised:
        target = None if keras.tree.is_nested(y) or y is None else as_array(y)
        if prediction is None or target is None:
            return Recognised()
        last = last_activation(self._model)
        found = recognise_loss(value - self._penalty, prediction, target, self._model.loss, last)
        return found if found.floor is None else replace(found, floor=found.floor + self._penalty)

    def _answers(self, prediction: Array | None, y: Any) -> Answers | None:
        target = None if keras.tree.is_nested(y) or y is None else as_array(y)
        if prediction is None or target is None or self.kind == "other":
            return None
        reads = self._loss.reads
        if self.kind == "cross_entropy":
            if target.shape == prediction.shape:
                target = target.argmax(-1) if is_one_hot(target) else None
            elif target.ndim == prediction.ndim and target.shape[-1] == 1:
                target = target[..., 0]
            if target is None or target.shape != prediction.shape[:-1]:
                return None
            return class_answers(prediction, target, reads, getattr(self._model.loss, "ignore_class", None))
        if self.kind == "binary_cross_entropy":
            same = target.size == prediction.size
            return binary_answers(prediction.reshape(target.shape), target, reads) if same else None
        return Answers(prediction.reshape(len(prediction), -1)[:, 0])


def _each(part: Any, function: Any) -> Any:
    return None if part is None else keras.tree.map_structure(function, part)


def _single(prediction: Any) -> Array | None:
    parts = keras.tree.flatten(prediction)
    return np.asarray(tf.cast(parts[0], tf.float32)) if len(parts) == 1 else None


def _size_of(batch: Batch) -> int:
    shapes = [tuple(part.shape) for part in keras.tree.flatten(batch) if tf.is_tensor(part)]
    if len({shape[:1] for shape in shapes}) != 1 or not shapes[0]:
        raise CannotJudge("single examples cannot be cut out of a batch: its parts share no first axis")
    return int(shapes[0][0])


def _gathered(batch: Batch, further: Iterator[Batch], classes: frozenset[int]) -> Batch:
    """Join a batch with the next ones until there is every class, and a few examples."""
    for more in islice(further, MOST_BATCHES - 1):
        labels = row_classes({}, batch[1])
        there = frozenset[int]() if labels is None else frozenset(map(int, labels))
        if _size_of(batch) >= MIN_EXAMPLES and classes <= there:
            break
        try:
            keras.tree.assert_same_structure(batch, more)
            batch = keras.tree.map_structure(_joined, batch, more)
        except (ValueError, TypeError, tf.errors.InvalidArgumentError):  # of another length: they cannot be joined
            break
    return batch


def _joined(one: Any, other: Any) -> Any:
    return None if one is None else tf.concat([one, other], 0)


def _rows(batch: Batch, classes: frozenset[int], wanted: int) -> Rows:
    x, y, _ = batch
    size = _size_of(batch)
    inputs = digests([array for part in named(x).values() if (array := as_array(part)) is not None], size)
    target = None if y is None or keras.tree.is_nested(y) else as_array(y)
    if target is None:
        return Rows(inputs, inputs, None, frozenset(), wanted)
    labels = row_classes({}, y) if classes else None
    values = labels if labels is not None else target.reshape(size, -1)[:, 0] if target.size == size else None
    known = None if values is None else np.asarray(values, dtype=np.float64)
    return Rows(inputs, digests([target], size), known, classes if labels is not None else frozenset(), wanted)
