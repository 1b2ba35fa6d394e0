"""Watches one Keras optimizer in a training loop of the script."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.optimizer import steps_made, why_rate_is_unknown
from diagnostics.collectors.keras.values import StepValues, number_of
from diagnostics.collectors.keras.watch.fit_watcher import LOSS_FIELDS, gradient_fields, sample_fields
from diagnostics.collectors.keras.watch.watcher import allocated_memory
from diagnostics.collectors.keras.weights import Weights, not_finite
from diagnostics.collectors.shared.history import History, is_sampled_step, training_history
from diagnostics.facts.array import Array
from diagnostics.facts.calls import TapesWithoutGradient
from diagnostics.facts.loss_graph import LossGraph
from diagnostics.facts.nonfinite import OriginFacts, OriginKind
from diagnostics.facts.training import TrainingHistory

from .tape_pass import TapePass

_NO_REPLAY = "a step of this loop cannot be replayed"
_HIDDEN = "the step is a single tf.function, which does not show them"


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
