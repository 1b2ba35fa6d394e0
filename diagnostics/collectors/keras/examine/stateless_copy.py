"""A copy of a Keras model's weights, run and trained through the model's own layers without touching them.

Keras 3 can run a model with other values in the place of its variables (`StatelessScope`). So a copy is a list of
tensors, which any model has: functional, Sequential or subclassed.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, cast

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.batch import as_array, is_one_hot, named, row_classes
from diagnostics.collectors.keras.losses import recognise_loss
from diagnostics.collectors.keras.model import last_activation, layer_activations
from diagnostics.collectors.keras.optimizer import full_rate, inner_optimizer, optimizer_like
from diagnostics.collectors.keras.values import current
from diagnostics.collectors.keras.weights import units_of
from diagnostics.collectors.shared.equal_units import units_alike
from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.overfit_plan import Stopwatch, larger
from diagnostics.collectors.shared.overfit_run import Plan, Run
from diagnostics.collectors.shared.pipeline import CannotJudge, users_code
from diagnostics.collectors.subset_trials.answers import Answers, Seen, binary_answers, class_answers
from diagnostics.collectors.subset_trials.choice import MIN_EXAMPLES, MOST_BATCHES, Rows, digests
from diagnostics.facts.array import Array
from diagnostics.facts.layers import ActivationFacts
from diagnostics.facts.loss_contracts import LossKind

Weights = list[Any]
SEED = 0  # of every run, so that only the examples differ

Batch = tuple[Any, Any, Any]
"""Inputs, target and sample weights, as tensors; what is not there is None."""


class KerasCopy:
    """Computes loss, gradients and training runs of `model` on one batch, on values of its own.

    Args:
        model: compiled, built; only read.
        x: the inputs.
        y: the target; None if there is none.
        sample_weight: None if there is none.
    """

    def __init__(self, model: keras.Model, x: Any, y: Any, sample_weight: Any) -> None:
        _free_unused()  # of the copy before this one
        self._model = model
        self._batch = (x, y, sample_weight)
        self.further: list[tuple[Any, Any, Any]] = []  # batches to take turns with this one, for a plan of several
        self._takes_training = getattr(model, "_call_has_training_arg", True)
        self._trainable = list(model.trainable_variables)
        self._other = list(model.non_trainable_variables)
        # Batch norm must see batch statistics; where there is none, dropout is better off.
        self._training = any("batchnorm" in type(layer).__name__.lower() for layer in model._flatten_layers())
        self._learners: dict[str, _Learner] = {}
        self._held: tuple[Weights, Weights] | None = None

    def hold_start(self) -> None:
        """Let every later run start from the values that the model has now."""
        self._held = self.start()

    def start(self) -> tuple[Weights, Weights]:
        """Return the values that the model has now, or had at `hold_start`: trainable, and the others."""
        if self._held is not None:
            return list(self._held[0]), list(self._held[1])
        return [current(v) for v in self._trainable], [current(v) for v in self._other]

    def predict(self, trainable: Weights, other: Weights, training: bool) -> Any:
        """Run the model with these values."""
        with self._scope(trainable, other):
            return self._call(self._batch[0], training)

    def penalty(self) -> float:
        """Return what the model adds to its loss by itself: the penalties of its regularizers, and `add_loss`."""
        trainable, other = self.start()
        with self._scope(trainable, other):
            self._call(self._batch[0], training=False)
            return float(sum(float(tf.reduce_sum(loss)) for loss in self._model.losses))

    def adds_losses(self) -> bool:
        """Whether the model adds losses by itself."""
        with self._scope(*self.start()):
            self._call(self._batch[0], training=False)
            return bool(self._model.losses)

    def activations(self) -> tuple[ActivationFacts, ...]:
        """Look at the model's activation functions."""
        with self._scope(*self.start()):
            return layer_activations(self._model, self._batch[0])

    def loss(self, trainable: Weights, other: Weights, training: bool, x: Any = None) -> tuple[Any, Any]:
        """Return loss and prediction, compiled as the user compiled the model; `x`: of other inputs."""
        compiled = self._function(
            lambda t, o, batch: self._compute(t, o, training, batch)[:2], bool(self._model.jit_compile)
        )
        batch = self._batch if x is None else (x, *self._batch[1:])
        loss, prediction = compiled(trainable, other, batch)
        return loss, prediction

    def non_finite_rows(self) -> tuple[int, ...] | None:
        """Return the examples whose loss alone is NaN or infinite; None for a loss that needs the whole batch."""
        try:
            losses = self._row_losses(len(keras.tree.flatten(self._batch[0])[0]))
        except Exception:  # whatever a model or a loss of the user's raises
            return None
        return tuple(row for row, loss in enumerate(losses) if not math.isfinite(loss))

    def _row_losses(self, size: int) -> list[float]:
        trainable, other = self.start()
        whole = self._batch
        compiled = self._function(
            lambda t, o, batch: self._compute(t, o, False, batch)[0], bool(self._model.jit_compile)
        )
        losses = []
        for row in range(size):
            cut = tuple(
                None if part is None else keras.tree.map_structure(lambda v, row=row: v[row : row + 1], part)
                for part in whole
            )
            losses.append(float(compiled(trainable, other, cut)))
        return losses

    def gradients(self, at: tuple[Weights, Weights] | None = None, training: bool = True) -> list[Any]:
        """Return the gradient of the loss for each trainable variable; None where there is none.

        Args:
            at: the values at which to differentiate; None for those of `start`.
            training: whether dropout drops and batch norm sees the statistics of the batch.
        """
        trainable, other = self.start() if at is None else at

        def compute(trainable: Weights, other: Weights) -> list[Any]:
            with tf.GradientTape() as tape:
                tape.watch(trainable)
                loss, _, _ = self._compute(trainable, other, training, self._batch)
            gradients: list[Any] = tape.gradient(loss, trainable)
            return gradients

        return compute(trainable, other)

    def run(
        self,
        plan: Plan,
        optimizer: Callable[[], keras.optimizers.Optimizer] | None,
        seen: Callable[[float, Any], object] = lambda _loss, _prediction: None,
    ) -> Run:
        """Train from the model's values.

        Args:
            plan: which settings.
            optimizer: builds one with the user's settings.
            seen: called with loss and prediction before each step.
        """
        learner = self._learner(optimizer if plan.theirs else None)
        batches = (self._batch, *self.further)
        watch = Stopwatch()
        first, other = self.start()
        at_first = spread(self.predict(first, other, training=False))
        learner.restart(first, plan.learning_rate)
        losses: list[float] = []
        ratios: list[float] = []
        trainable = first
        for _ in range(plan.steps):
            batch = batches[len(losses) % plan.batches]
            loss, prediction, updated, moved = learner.step(other, batch)
            losses.append(float(loss))
            seen(losses[-1], prediction)
            watch.step()
            if plan.is_done(losses):
                break
            ratios.append(_update_ratio(trainable, updated))
            trainable, other = updated, moved
        in_the_end = spread(self.predict(trainable, other, training=False))
        names = [variable.path for variable in self._trainable]
        return Run(
            losses=tuple(losses),
            update_ratios=tuple(ratios),
            output_spread=larger(at_first, in_the_end),
            symmetric=tuple(
                name
                for name, old, new in zip(names, first, trainable, strict=True)
                if units_alike(units_of(old)) and units_alike(units_of(new))
            ),
            pace=watch.pace,
        )

    def _scope(self, trainable: Weights, other: Weights) -> Any:
        pairs = [*zip(self._trainable, trainable, strict=True), *zip(self._other, other, strict=True)]
        return keras.StatelessScope(state_mapping=pairs, collect_losses=True)

    def _call(self, x: Any, training: bool) -> Any:
        return self._model(x, training=training) if self._takes_training else self._model(x)

    def _compute(self, trainable: Weights, other: Weights, training: bool, batch: Any) -> tuple[Any, Any, Weights]:
        x, y, sample_weight = batch
        with self._scope(trainable, other) as scope:
            prediction = self._call(x, training)
            # What `fit` calls: it knows of a `compute_loss` that takes no `training`.
            loss = self._model._compute_loss(
                x=x, y=y, y_pred=prediction, sample_weight=sample_weight, training=training
            )
        updated = [scope.get_current_value(variable) for variable in self._other]
        return loss, prediction, [old if new is None else new for old, new in zip(other, updated, strict=True)]

    def _learner(self, optimizer: Callable[[], keras.optimizers.Optimizer] | None) -> _Learner:
        kind = "ours" if optimizer is None else "theirs"
        if kind not in self._learners:
            built = keras.optimizers.AdamW(weight_decay=0.0) if optimizer is None else optimizer()
            self._learners[kind] = _Learner(
                built,
                self._trainable,
                lambda values, other, batch: self._compute(values, other, self._training, batch),
                # To compile a step with XLA takes longer than the few dozen steps that it would speed up.
                lambda step: self._function(step, xla=False),
            )
        return self._learners[kind]

    def _function(self, function: Callable[..., Any], xla: bool) -> Callable[..., Any]:
        """Make it a graph, with XLA or without; nothing where the user runs the model eagerly."""
        if self._model.run_eagerly:
            return function
        compiled: Any = tf.function(function, autograph=False, jit_compile=xla)
        # Each examination retraces, which TensorFlow would call a mistake in the user's program.
        compiled._omit_frequent_tracing_warning = True
        return cast(Callable[..., Any], compiled)


class _Learner:
    """An optimizer with variables of its own to change: a copy of the trainable ones.

    Args:
        optimizer: fresh.
        variables: the model's; their values and shapes are copied.
        compute: (trainable values, other values, batch) to (loss, prediction, other values).
        compiled: compiles the step as the user compiled the model.
    """

    def __init__(
        self,
        optimizer: keras.optimizers.Optimizer,
        variables: list[Any],
        compute: Callable[[Weights, Weights, Any], tuple[Any, Any, Weights]],
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        self._optimizer = optimizer
        self._compute = compute
        # Its value: given a tf.Variable itself, Keras would take that one over, and it is the user's.
        self._own = [keras.Variable(current(v), dtype=v.dtype, trainable=True) for v in variables]
        optimizer.build(self._own)
        self._fresh = [current(v) for v in optimizer.variables]
        self.step = compiled(self._one_step)
        # TensorFlow never frees the graph of such a step, which holds the variables: a copy of the model each.
        handles = [(v.value.handle, v.value.dtype) for v in (*self._own, *optimizer.variables)]
        weakref.finalize(self, _unused.extend, handles).atexit = False

    def restart(self, values: Weights, learning_rate: float) -> None:
        """Begin again from these values, with an optimizer that remembers nothing."""
        for variable, value in zip(self._own, values, strict=True):
            variable.assign(value)
        for variable, value in zip(self._optimizer.variables, self._fresh, strict=True):
            variable.assign(value)
        self._optimizer.learning_rate = learning_rate

    def _one_step(self, other: Weights, batch: Any) -> tuple[Any, Any, Weights, Weights]:
        with tf.GradientTape() as tape:
            values = [tf.identity(v.value) for v in self._own]
            tape.watch(values)
            loss, prediction, other = self._compute(values, other, batch)
        gradients = tape.gradient(loss, values)
        known = [tf.zeros_like(old) if new is None else new for old, new in zip(values, gradients, strict=True)]
        self._optimizer.apply(known, self._own)
        return loss, prediction, [tf.identity(v.value) for v in self._own], other


_unused: list[tuple[Any, Any]] = []
"""Handles of variables that nothing uses, each with its dtype."""


def _free_unused() -> None:
    """Free the memory of variables that nothing uses.

    A finalizer must not do this: it may run while TensorFlow traces the script's function, where an operation
    becomes part of the graph, or waits for ever for a lock.
    """
    if not tf.executing_eagerly():
        return
    while _unused:
        handle, dtype = _unused.pop()
        with contextlib.suppress(Exception):  # of a context that is being closed
            tf.raw_ops.AssignVariableOp(resource=handle, value=tf.zeros((0,), dtype))


def spread(prediction: Any) -> float | None:
    """Return the largest standard deviation across examples, over the root mean square."""
    values = np.asarray(tf.cast(keras.tree.flatten(prediction)[0], tf.float32))
    if values.ndim == 0 or values.shape[0] < 2:
        return None
    values = values.reshape(values.shape[0], -1)
    scale = float(np.sqrt(np.square(values).mean()))
    return float(values.std(0).max()) / scale if scale > 0 else 0.0


def _update_ratio(before: Weights, after: Weights) -> float:
    """Return the median over weights (biases and scales left out) of |update| / |weight|."""
    ratios = []
    for old, new in zip(before, after, strict=True):
        if len(old.shape) < 2:
            continue
        # In NumPy: TensorFlow's own norm, run eagerly, costs several times as much for each weight.
        first, then = (np.asarray(tf.cast(values, tf.float32)).reshape(-1) for values in (old, new))
        size = float(np.linalg.norm(first))
        if size > 0:
            ratios.append(float(np.linalg.norm(then - first)) / size)
    return float(np.median(ratios)) if ratios else 0.0


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
