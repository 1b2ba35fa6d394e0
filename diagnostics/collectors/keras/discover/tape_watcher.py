"""Watches one Keras optimizer in a training loop of the script, or gradients that no optimizer ever applies."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras.optimizer import steps_made, why_rate_is_unknown
from diagnostics.collectors.keras.values import StepValues, array_of, number_of
from diagnostics.collectors.keras.watch.fit_watcher import LOSS_FIELDS, gradient_fields, sample_fields
from diagnostics.collectors.keras.watch.watcher import allocated_memory
from diagnostics.collectors.keras.weights import Weights, not_finite
from diagnostics.collectors.shared.history import History, is_sampled_step, training_history
from diagnostics.facts.array import Array
from diagnostics.facts.calls import StepOrderFacts, TapesWithoutGradient
from diagnostics.facts.loss_graph import LossGraph
from diagnostics.facts.nonfinite import OriginFacts, OriginKind
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.facts.training import TrainingHistory

from .tape_pass import TapePass

_NO_REPLAY = "a step of this loop cannot be replayed"
_HIDDEN = "the step is a single tf.function, which does not show them"
MOST_BYTES = 16 * 2**20  # of the weights, whose first values are kept


class TapeLoopWatcher:
    """Records the steps of an optimizer on the variables of its first step; called by `TapeLoopFinder`.

    It keeps neither alive.

    Attributes:
        name: what a report calls it.
        eager: whether each step is seen, or only that a `tf.function` has made some.
        steps: of the optimizer so far.
        faults: always empty: the finder takes the faults.
        uncovered: by part, why it could not be watched.
        forwards: passes that were seen: one a step.
        origin: the step of the first NaN or inf; its cause is not known.
        graph: of the loss, if the step was traced.
        values: before a step, which is taken back if that ends the training; None while nothing may end it.
        seen: what was called under the tape of its first step; None if not known.
        tapes: counts those that recorded a pass for nothing.
    """

    def __init__(self, optimizer: Any, variables: list[Any], eager: bool, every: int) -> None:
        """Start with an optimizer that is about to step, or whose step is being traced."""
        self.eager = eager
        self.steps = self.forwards = 0
        self.faults: dict[str, str] = {}
        self.uncovered = {"weights": _NO_REPLAY}
        self.origin: OriginFacts | None = None
        self.graph: LossGraph | None = None
        self.values: StepValues | None = None
        self.seen: TapePass | None = None
        self.tapes = UnaskedCount()
        if not eager:
            self.uncovered["gradients"] = _HIDDEN
        self._optimizer, self._every = weakref.ref(optimizer), every
        self.name = f"a loop with Keras' {type(optimizer).__name__}"
        if (why := why_rate_is_unknown(optimizer)) is not None:
            self.uncovered["learning rate"] = why
        self._weights = Weights(variables)
        if not self._weights.small:
            self.uncovered["updates"] = "the weights are too large to be copied"
        self._rows = History([*LOSS_FIELDS, *gradient_fields(len(self._weights.layers))])
        self._samples = History(sample_fields(len(self._weights.layers)))
        self._counted = steps_made(optimizer)
        self._values: list[Any] | None = None
        self._is_recorded = False  # the step that is under way
        self._scales_loss = hasattr(optimizer, "inner_optimizer")  # it skips a step whose gradients overflow

    def before(self) -> None:
        """Copy the weights before a sampled step."""
        wanted = is_sampled_step(self.steps, self._every) and self._weights.small
        self._values = self._weights.read() if wanted and self._weights.are_there else None

    def changed(self) -> list[Any]:
        """Return what a step changes: the weights, and the state of the optimizer."""
        optimizer = self._optimizer()
        state = () if optimizer is None else optimizer.variables
        return [*(variable for variable in self._weights.variables if variable is not None), *state]

    def judge(self, loss: Any, grads: list[Any]) -> None:
        """Record an eager step before it is made, and have it judged, if it is not finite.

        Args:
            loss: a tensor () or None.
            grads: a gradient or None for each variable.

        Raises:
            TrainingStopped: it ends the training.
        """
        if self.values is None or not self.values.wants or self._scales_loss:
            return
        norms = self._weights.gradient_norms(grads)
        if not np.isfinite(norms).all() or (loss is not None and not math.isfinite(float(loss))):
            self._values = None
            self._record(loss, norms)
            self._is_recorded = True
            self.values.judge()

    def after(self, loss: Any, grads: list[Any]) -> None:
        """Record an eager step, unless `judge` has; see there."""
        if not self._is_recorded:
            self._record(loss, self._weights.gradient_norms(grads))
        self._is_recorded = False

    def _record(self, loss: Any, norms: Array) -> None:
        self._step(self._optimizer(), math.nan if loss is None else float(loss), loss is not None, norms)

    def called(self, result: Any, alone: bool) -> bool:
        """Record the result of a `tf.function`, and return whether it has stepped.

        Args:
            result: of the function; the loss is read only if no other optimizer steps.
            alone: whether none does.

        Raises:
            TrainingStopped: its loss or the weights are not finite, and that ends the training.
        """
        optimizer = self._optimizer()
        if optimizer is None:
            return False
        counted = steps_made(optimizer)
        stepped, self._counted = counted - self._counted, counted
        if stepped <= 0:
            return False
        loss = _loss_in(result) if alone and stepped == 1 else None
        self.steps += stepped - 1
        judged = self.values if self.values is not None and self.values.wants else None
        if judged is not None and self.origin is None and self._weights.are_there:
            self._broken_weights()
        self._step(optimizer, math.nan if loss is None else loss, loss is not None, None)
        if judged is not None and self.origin is not None:
            judged.judge()
        return True

    def _step(self, optimizer: Any, loss: float, known: bool, norms: Any) -> None:
        if self._values is not None:
            ratios, sizes = self._weights.measure(self._values)
            self._samples.append((self.steps, ratios, sizes, allocated_memory()))
            self._values = None
            if not np.isfinite(ratios).all() and self.origin is None:
                self._broken_weights()
        if known and not math.isfinite(loss) and self.origin is None:
            self.origin = self._origin(None, loss=loss)
        none = np.zeros(len(self._weights.layers), np.float32)
        by_layer = none if norms is None else norms
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.sqrt(np.square(by_layer.astype(np.float64)).sum()))
        rate = math.nan if "learning rate" in self.uncovered else number_of(optimizer.learning_rate)
        self._rows.append((self.steps, loss, known, [rate], total, by_layer, norms is not None))
        self.steps += 1
        self.forwards = self.steps

    def _broken_weights(self) -> None:
        weights = self._weights
        if broken := not_finite(weights.names, weights.read()[: weights.trainable]):
            self.origin = self._origin("weights", parameters=broken)

    def _origin(self, kind: OriginKind | None, **known: Any) -> OriginFacts:
        count = len(self._weights.names)
        return OriginFacts(self.steps, kind, False, self.steps, num_parameters=count, reason=_NO_REPLAY, **known)

    def read(self) -> None:
        """Do nothing: each step is read at once."""

    def ranges(self) -> None:
        """Return None: activations are not visible."""
        return None

    def history(self) -> TrainingHistory:
        """Return the run so far."""
        return training_history(
            self._rows.arrays(),
            self._samples.arrays(),
            total_steps=self.steps,
            layers=self._weights.layers,
            memory_holder="process",
        )


def _loss_in(result: Any) -> float | None:
    """Return the loss in the result of a step's function: its only number, or the entry ``loss``."""
    if isinstance(result, Mapping):
        result = result.get("loss")
    if isinstance(result, tf.Tensor) and result.shape.rank == 0 and result.dtype.is_floating:
        return float(result)
    return None


class UnaskedCount:
    """Takes the steps of one optimizer, one by one."""

    def __init__(self) -> None:
        self._steps = self._tapes = 0
        self._fewest: int | None = None

    def stepped(self, unasked: int) -> None:
        """Take how many tapes were left unasked since the step before."""
        unasked = max(0, unasked)
        self._steps += 1
        self._tapes += unasked
        self._fewest = unasked if self._fewest is None else min(self._fewest, unasked)

    def facts(self) -> TapesWithoutGradient | None:
        """Return what was counted; None where no step left a tape."""
        return TapesWithoutGradient(self._steps, self._tapes, self._fewest) if self._fewest else None


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
