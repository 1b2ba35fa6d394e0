"""Trains copies of a Keras model from its first weights, on its training batches, with one thing changed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.keras import internals
from diagnostics.collectors.keras.harmless import NOTICED, of_loss, of_making
from diagnostics.collectors.keras.losses import contract_as_set, expects_indices
from diagnostics.collectors.keras.model import activation_of, last_layer
from diagnostics.collectors.keras.optimizer import inner_optimizer, rates_of
from diagnostics.collectors.keras.values import array_of
from diagnostics.collectors.shared.experiments.experiment import Rows, Setup, constant_answers, rows_of
from diagnostics.collectors.shared.experiments.plan import ADAM_RATE, STEPS, run_experiments
from diagnostics.facts.array import Array
from diagnostics.facts.experiments import Experiments

from .kept_training import KeptTraining

REL_TOLERANCE = 1e-3  # between the predictions of the model and of a copy with its weights
VARIES = 1e-3  # relative: rates of a schedule
CLIPPING = ("clipnorm", "global_clipnorm", "clipvalue")
NORMALISE = (
    keras.layers.BatchNormalization,
    keras.layers.LayerNormalization,
    keras.layers.GroupNormalization,
    keras.layers.UnitNormalization,
)


def experiments(
    model: keras.Model, training: KeptTraining, deadline: float, steps: int = STEPS
) -> Experiments | str:
    """Run the experiments on copies; return why they cannot be run, if so.

    Args:
        model: as its training has left it. It is called, and not changed.
        training: how it began.
        deadline: of `time.monotonic`.
        steps: of a copy, at most.
    """
    if training.why_not:
        return training.why_not
    if (why := of_loss(model).objection) is not None:
        return f"its loss was not computed again, because {NOTICED.format(why)}"
    indices = expects_indices(model.loss)
    rows = rows_of([(x, y.astype(np.int64) if indices else y) for x, y in training.batches])
    if isinstance(rows, str):
        return rows
    with own_run(), own_warnings_ignored():
        copies = _Copies(model, training, rows)
        if (why := copies.objection()) is not None:
            return why
        return run_experiments(lambda: KerasSetup(copies, rows), deadline, steps)


class _Copies:
    """Copies of a model with some changes, each of which is traced once, however many runs it makes.

    Args:
        model: as its training has left it.
        training: how it began.
        rows: of its batches.

    Attributes:
        plain: a copy without changes; the model itself, where it cannot be built a second time. Then its weights
            are copied all the same, and its layers are left as they are.
    """

    def __init__(self, model: keras.Model, training: KeptTraining, rows: Rows) -> None:
        self.model, self.training, self.rows = model, training, rows
        self.plain = model
        if of_making(model).objection is None:
            with contextlib.suppress(Exception):  # of a subclass whose arguments cannot be written down
                self.plain = self.copy()
        rates = rates_of(inner_optimizer(model), len(training.batches)) or training.rates
        self.rate = max(training.rate, *rates)
        varies = self.rate - min(rates) > VARIES * self.rate
        self.rates = tuple(rate / self.rate for rate in rates) if varies else ()
        self._learners: dict[Any, _Learner] = {}

    def copy(self) -> keras.Model:
        """Build the model again, with the weights and the trainable layers that it began with."""
        model, training = self.model, self.training
        if hasattr(model, "_operations_by_depth") or isinstance(model, keras.Sequential):
            copied = keras.models.clone_model(model)
        else:
            copied = type(model).from_config(model.get_config())
        if not copied.built or not copied.weights:
            copied(self.inputs(self.rows.held_out[:1]))
        copied.set_weights(training.values)  # raises where there are others
        for layer, trained in zip(copied._flatten_layers(), training.trained, strict=True):
            if layer.trainable != trained:
                layer.trainable = trained
        return copied

    def inputs(self, chosen: Array, rows: Rows | None = None) -> Any:
        """Return the inputs of some rows, as the model takes them."""
        given = (self.rows if rows is None else rows).inputs
        parts = [tf.convert_to_tensor(given[str(place)][chosen]) for place in range(len(given))]
        return keras.tree.pack_sequence_as(self.training.structure, parts)

    def objection(self) -> str | None:
        """Say why copies are not what the model is; None if they are. Its weights of now are tried."""
        given = self.inputs(self.rows.held_out[:8])
        if not self.is_own:
            self.plain.set_weights([array_of(weight) for weight in self.model.weights])
        wanted, found = (np.asarray(_called(one, given, training=False)) for one in (self.model, self.plain))
        if wanted.shape != found.shape or wanted.dtype.kind != "f":
            return "its model does not return one prediction"
        same = np.allclose(wanted, found, rtol=REL_TOLERANCE, atol=REL_TOLERANCE * float(np.abs(wanted).max()))
        return None if same or not np.isfinite(wanted).all() else "a copy of its model predicts something else"

    @property
    def is_own(self) -> bool:
        """Whether the script's own model is run, with other values in the place of its weights."""
        return self.plain is self.model

    def learner(self, changes: frozenset[str], settings: tuple[str, ...], make: Callable[[], Any]) -> _Learner:
        """Return what trains a copy with these changes, and the optimizer that `make` makes for the settings."""
        key = changes, settings
        if key not in self._learners:
            copied = self.model if self.is_own else self.copy()
            for change in changes:
                _CHANGES[change](copied)
            self._learners[key] = _Learner(copied, self.model, make(), penalised="no decay" not in settings)
        return self._learners[key]


class _Learner:
    """A copy, its optimizer, and their compiled step.

    Args:
        copied: to be trained, on values of its own in the place of its variables'.
        model: the script's, for its loss.
        optimizer: fresh.
        penalised: whether penalties on the weights count.
    """

    def __init__(self, copied: keras.Model, model: keras.Model, optimizer: Any, *, penalised: bool) -> None:
        self.copied, self._optimizer, self._penalised = copied, optimizer, penalised
        loss = keras.losses.get(model.loss)
        self.criterion = loss if isinstance(loss, keras.losses.Loss) else _as_class(loss)
        self._variables = list(copied.variables)
        self._own = [keras.Variable(array_of(v), dtype=v.dtype, trainable=v.trainable) for v in self._variables]
        trained, place = (
            set(map(id, copied.trainable_variables)),
            {id(v): n for n, v in enumerate(self._variables)},
        )
        self._trained = [n for n, variable in enumerate(self._variables) if id(variable) in trained]
        self._weights = [self._own[place[id(weight)]] for weight in copied.weights]
        weights = set(map(id, self._weights))
        self._random = [(own, array_of(own)) for own in self._own if id(own) not in weights]
        optimizer.build([self._own[n] for n in self._trained])
        self._fresh = [array_of(variable) for variable in optimizer.variables]
        self._step, self._loss = self._compiled(self._one_step), self._compiled(self._one_loss)

    def restart(self, values: list[Array], rate: float) -> None:
        """Begin again from these weights, with an optimizer that remembers nothing."""
        begins = zip(self._weights, values, strict=True)
        fresh = zip(self._optimizer.variables, self._fresh, strict=True)
        for variable, value in (*begins, *fresh, *self._random):
            variable.assign(value)
        self.set_rate(rate)

    def set_rate(self, rate: float) -> None:
        """Set the learning rate."""
        self._optimizer.learning_rate = rate

    def step(self, x: Any, y: Array, scale: tuple[float, float]) -> float:
        """Make a step; return the loss before it, of predictions and targets at their own scale."""
        return float(self._step(x, *self._numbers(y, scale)))

    def loss(self, x: Any, y: Array, scale: tuple[float, float]) -> float:
        """Compute the loss as in training, without a step; each time with the same random numbers."""
        for variable, value in self._random:
            variable.assign(value)
        return float(self._loss(x, *self._numbers(y, scale)))

    def _numbers(self, y: Array, scale: tuple[float, float]) -> tuple[Any, ...]:
        return (tf.convert_to_tensor(y), *(tf.constant(number, tf.float32) for number in scale))

    def _one_step(self, x: Any, y: Any, mean: Any, deviation: Any) -> Any:
        values = [tf.identity(own.value) for own in self._own]
        with tf.GradientTape() as tape:
            tape.watch([values[n] for n in self._trained])
            prediction, penalties, moved = self._predict(values, x)
            trained = self.criterion((tf.cast(y, tf.float32) - mean) / deviation, prediction)
            if self._penalised and penalties:
                trained = trained + tf.add_n(penalties)
        gradients = tape.gradient(trained, [values[n] for n in self._trained])
        known = [
            tf.zeros_like(values[n]) if gradient is None else gradient
            for n, gradient in zip(self._trained, gradients, strict=True)
        ]
        self._optimizer.apply(known, [self._own[n] for n in self._trained])
        for own, value in moved:
            own.assign(value)
        return self.criterion(y, prediction * deviation + mean)

    def _one_loss(self, x: Any, y: Any, mean: Any, deviation: Any) -> Any:
        values = [tf.identity(own.value) for own in self._own]
        return self.criterion(y, self._predict(values, x)[0] * deviation + mean)

    def _predict(self, values: list[Any], x: Any) -> tuple[Any, list[Any], list[tuple[Any, Any]]]:
        """Return the prediction, the penalties, and the values that the call gives to other variables."""
        pairs = list(zip(self._variables, values, strict=True))
        with keras.StatelessScope(state_mapping=pairs, collect_losses=True) as scope:
            prediction, penalties = _called(self.copied, x, training=True), list(self.copied.losses)
        held = zip(self._own, self._variables, strict=True)
        others = [(own, variable) for n, (own, variable) in enumerate(held) if n not in self._trained]
        now = [(own, scope.get_current_value(variable)) for own, variable in others]
        return prediction, penalties, [(own, value) for own, value in now if value is not None]

    def _compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compile it for batches of any number of rows: those held out are missing in them."""
        compiled: dict[Any, Any] = {}

        def call(x: Any, y: Any, mean: Any, deviation: Any) -> Any:
            key = y.shape[1:]
            if key not in compiled:
                specs = keras.tree.map_structure(_of_any_length, (x, y, mean, deviation))
                compiled[key] = tf.function(function, input_signature=specs, autograph=False)
            return compiled[key](x, y, mean, deviation)

        return call


class KerasSetup(Setup):
    """A copy of a model, its optimizer, and its loss.

    Args:
        copies: of the model.
        rows: that they are trained on.
    """

    def __init__(self, copies: _Copies, rows: Rows) -> None:
        training, model = copies.training, copies.model
        settings = training.settings
        super().__init__(
            library="keras",
            rows=rows,
            contract=contract_as_set(model.loss),
            optimizer=training.optimizer.__name__,
            rate=copies.rate,
            rates=copies.rates,
            clip=next((float(settings[name]) for name in CLIPPING if settings.get(name)), None),
            decays=bool(settings.get("weight_decay")) or any(v.regularizer for v in copies.plain.weights),
        )
        self._copies, self._changes, self._drawn = copies, set[str](), False
        self._learner: _Learner | None = None

    def begin(self, start: int) -> Callable[[Array, float], float]:
        """See `Setup.begin`."""
        training = self._copies.training
        left_out = (() if self.clip is not None else ("no clipping",)) + (() if self.decays else ("no decay",))
        self._learner = learner = self._copies.learner(
            frozenset(self._changes), ("Adam",) if self.with_adam else left_out, self._optimizer
        )
        full = ADAM_RATE if self.with_adam else self.rate * self.factor
        learner.restart(_drawn(learner.copied, training.values) if self._drawn else training.values, full)
        scale = self._scale

        def step(rows: Array, share: float) -> float:
            if self.rates:
                learner.set_rate(full * share)
            return learner.step(self._copies.inputs(rows, self.rows), self.rows.target[rows], scale)

        return step

    def loss(self, rows: Array) -> float:
        """See `Setup.loss`."""
        assert self._learner is not None
        return self._learner.loss(self._copies.inputs(rows, self.rows), self.rows.target[rows], self._scale)

    def constant(self) -> float:
        """See `Setup.constant`."""
        self.begin(0)
        assert self._learner is not None
        criterion = self._learner.criterion
        one_row = self._copies.inputs(self.rows.held_out[:1])
        others = tuple(_called(self._copies.plain, one_row, training=False).shape[1:])
        answers = constant_answers(self.contract, self.rows.target[self.rows.held_out], others)

        def loss(rows: Array, answer: Array) -> float:
            given = np.broadcast_to(answer, (len(rows), *others)).astype(np.float32)
            target = self.rows.target[rows]
            if self.contract.targets != "classes":
                target = target.reshape(given.shape)
            return float(criterion(tf.convert_to_tensor(target), tf.convert_to_tensor(given)))

        return min((self.on_held_out(partial(loss, answer=one)) for one in answers), default=math.nan)

    def layers(self, kind: str) -> list[str]:
        """See `Setup.layers`."""
        layers = list(self._copies.plain._flatten_layers(include_self=False))
        if self._copies.is_own and kind != "initialised":
            return []
        if kind == "frozen":
            return [layer.name for layer in layers if layer._trainable_variables and not layer.trainable]
        if kind == "initialised":
            return [layer.name for layer in layers if _has_kernel(layer)]
        return [layer.name for layer in layers if kind in _KINDS and _KINDS[kind](layer)]

    def remove(self, kind: str) -> None:
        """See `Setup.remove`."""
        self._changes.add(kind)

    def set_training_mode(self) -> None:
        """Do nothing: `fit` and `train_on_batch` train in no other mode."""

    def unfreeze(self) -> None:
        """See `Setup.unfreeze`."""
        self._changes.add("unfrozen")

    def to_float32(self) -> None:
        """Do nothing: no model in half precision is copied."""

    def initialise(self) -> None:
        """See `Setup.initialise`."""
        self._drawn = True

    def last_activation(self) -> str | None:
        """See `Setup.last_activation`."""
        layer = None if self._copies.is_own else last_layer(self._copies.plain)
        if not isinstance(layer, _ACTIVATED):
            return None
        name = activation_of(layer)
        return None if name == "linear" else name

    def remove_last_activation(self) -> None:
        """See `Setup.remove_last_activation`."""
        self._changes.add("last activation")

    @property
    def _scale(self) -> tuple[float, float]:
        return (0.0, 1.0) if self.target_scale is None else self.target_scale

    def _optimizer(self) -> Any:
        if self.with_adam:
            return keras.optimizers.Adam(ADAM_RATE)
        training = self._copies.training
        settings = {**training.settings, "learning_rate": training.rate, "gradient_accumulation_steps": None}
        if self.clip is None:
            settings |= dict.fromkeys(CLIPPING)
        if not self.decays and settings.get("weight_decay"):
            settings["weight_decay"] = 0.0
        return training.optimizer.from_config(settings)


_ACTIVATED = (
    keras.layers.Dense,
    keras.layers.EinsumDense,
    keras.layers.Conv1D,
    keras.layers.Conv2D,
    keras.layers.Conv3D,
    keras.layers.Activation,
    keras.layers.ReLU,
    keras.layers.Softmax,
)
"""Layers whose result is that of their activation."""

_KINDS: dict[str, Callable[[Any], bool]] = {
    "dropout": lambda layer: "Dropout" in type(layer).__name__ and bool(getattr(layer, "rate", 0)),
    "normalisation": lambda layer: isinstance(layer, NORMALISE),
}


def _without_dropout(copied: keras.Model) -> None:
    for layer in copied._flatten_layers():
        if _KINDS["dropout"](layer):
            layer.rate = 0.0


def _without_normalisation(copied: keras.Model) -> None:
    for layer in copied._flatten_layers():
        if _KINDS["normalisation"](layer):
            layer.call = _unchanged


def _without_last_activation(copied: keras.Model) -> None:
    layer = last_layer(copied)
    if hasattr(layer, "activation"):
        layer.activation = keras.activations.linear
    else:
        layer.call = _unchanged


def _unfrozen(copied: keras.Model) -> None:
    for layer in copied._flatten_layers():  # to set it for the model alone changes nothing where it was set
        layer.trainable = True


_CHANGES: dict[str, Callable[[keras.Model], None]] = {
    "dropout": _without_dropout,
    "normalisation": _without_normalisation,
    "last activation": _without_last_activation,
    "unfrozen": _unfrozen,
}


def _unchanged(inputs: Any, *_arguments: Any, **_options: Any) -> Any:
    """Stand for a layer that is left out."""
    return inputs


def _has_kernel(layer: Any) -> bool:
    return isinstance(getattr(layer, "kernel", None), keras.Variable) and hasattr(layer, "kernel_initializer")


def _drawn(copied: keras.Model, values: list[Array]) -> list[Array]:
    """Return first weights in which each kernel is drawn as Keras does by default, and its bias is 0."""
    draw, drawn = keras.initializers.GlorotUniform(seed=0), dict[int, Array]()
    for layer in copied._flatten_layers():
        if _has_kernel(layer):
            drawn[id(layer.kernel)] = np.asarray(draw(layer.kernel.shape))
            if isinstance(getattr(layer, "bias", None), keras.Variable):
                drawn[id(layer.bias)] = np.zeros(layer.bias.shape, np.float32)
    return [drawn.get(id(weight), value) for weight, value in zip(copied.weights, values, strict=True)]


def _called(model: keras.Model, x: Any, *, training: bool) -> Any:
    return model(x, training=training) if getattr(model, "_call_has_training_arg", True) else model(x)


def _as_class(function: Callable[..., Any]) -> Any:
    """Wrap a loss function as `compile` does, which makes the ranks of target and prediction agree."""
    return internals.LossFunctionWrapper(function)


def _of_any_length(part: Any) -> Any:
    return tf.TensorSpec([None, *part.shape[1:]] if part.shape.rank else [], part.dtype)
