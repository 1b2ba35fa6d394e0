"""What the watchers of a `fit` have in common, on any backend. Imports no TensorFlow."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal

import keras
import numpy as np

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.keras import internals
from diagnostics.collectors.keras.model import has_own_train_step, has_parts_weights
from diagnostics.collectors.keras.optimizer import inner_optimizer, settings_of
from diagnostics.collectors.keras.values import StepValues, number_of
from diagnostics.collectors.shared.fingerprint import (
    LAYERS,
    NUMBERS,
    hashes_of_rows,
    hashes_of_weights,
    part_of_rows,
    plain_settings,
    states_of_host,
)
from diagnostics.collectors.shared.history import History, training_history
from diagnostics.collectors.shared.step_clock import StepClock
from diagnostics.facts.array import Array
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.training import EARLY, StartFacts, TrainingHistory
from diagnostics.failed_batch import FailedBatch

from .over_time import KerasOverTime

EVALUATIONS = 4096  # evaluation losses remembered

LOSS_FIELDS: list[Any] = [
    ("steps", np.int64),
    ("losses", np.float64),
    ("loss_known", np.bool_),
    ("learning_rates", np.float64, (1,)),
]
STEP_FIELDS = [*LOSS_FIELDS, ("batch_fingerprints", np.uint64), ("batch_sizes", np.int64)]

CLOSE = 1e-4  # relative: a logged loss this near a metric's mean is that mean, up to float32

NOT_SET = ("name", "built", "optimizer")  # of a layer or a loss


def sample_fields(layers: int) -> list[Any]:
    """Return the fields of a closer look, for `History`."""
    return [
        ("sampled_steps", np.int64),
        ("update_ratios", np.float32, (layers,)),
        ("weight_norms", np.float32, (layers,)),
        ("memory_bytes", np.float64),
    ]


def gradient_fields(layers: int) -> list[Any]:
    """Return the fields of the gradients of a step, for `History`."""
    return [
        ("gradient_norms", np.float32),
        ("layer_gradient_norms", np.float32, (layers,)),
        ("gradient_known", np.bool_),
    ]


class FitWatcher(ABC):
    """Records the steps of a `fit`.

    A part that fails is switched off and reported in `faults`; nothing is raised into `fit`.

    Args:
        model: compiled, its train function made.
        every: steps between two samples; on an accelerator also between two reads.
        stop_after: steps after which to stop.
        current: returns the value of a variable as it is now, not waited for.
        uncovered: see below.

    Attributes:
        steps: optimizer steps so far.
        forwards: batches so far.
        faults: by part, the fault of this library.
        uncovered: by part, why it could not be watched.
        remarks: by part, how exact it is.
        origin: where the first NaN or inf came from, or was seen, once there is one.
        on_read: called every so many steps that were read, and at the end.
        first_batches: called with each batch, or with None and the reason, until it returns False.
        over_time: looks before chosen steps; None for no looks.
        clock: of the steps whose batches are seen.
        on_step: called after each step; None for nothing. It may end the training by TrainingStopped.
    """

    memory_holder: Literal["process", "accelerator"] = "process"
    _layers: tuple[str, ...] = ()  # that own a trainable variable, in order, once there are weights

    def __init__(
        self,
        model: keras.Model,
        every: int,
        stop_after: int | None,
        current: Callable[[Any], Any],
        uncovered: dict[str, str],
    ) -> None:
        self._model, self._every, self._stop_after = model, every, stop_after
        self.steps = self.forwards = 0
        self.uncovered, self.remarks = uncovered, dict[str, str]()
        self._guard = FaultGuard(uncovered=uncovered)
        self.faults, self._safely = self._guard.faults, self._guard.run
        self.origin: OriginFacts | None = None
        self._optimizer = inner_optimizer(model)
        self._passes = int(getattr(self._optimizer, "gradient_accumulation_steps", None) or 1)
        self._own_step = has_own_train_step(model)
        self._loss = BatchLoss(model, current)
        self._fit = getattr(model, "history", None)  # each has one of its own
        self._rows, self._samples = History(STEP_FIELDS), History(sample_fields(0))
        self._evaluations: deque[tuple[int, float]] = deque(maxlen=EVALUATIONS)
        self.on_read: Callable[[], None] | None = None
        self.first_batches: Callable[[Any, str], bool] | None = None
        self.over_time: KerasOverTime | None = None
        self.clock = StepClock()
        self._handed, self._closed = 0, False
        self.on_step: Callable[[], object] | None = None
        self._now = current
        self._values: StepValues | None = None  # while something may end the training
        self._start: FitStart | None = None
        self._safely("start", self._begin)

    def close(self) -> None:
        """Restore the model; the records stay."""
        if self._closed:
            return
        self._closed = True
        self._restore()
        self.read()
        if self.over_time is not None:
            self.over_time.end(self.steps)
        self._release()
        self.on_step, self._values = None, None

    def read(self) -> None:
        """Read everything pending from the device."""
        self._safely("readings", self._read)

    def batch(self) -> FailedBatch | None:
        """Return the batch in which NaN or inf first appeared; None while there is none, or if none is kept."""
        return None

    def ranges(self) -> None:
        """Return None: measuring activations would take a second forward pass."""
        return None

    def facts(self) -> list[Any]:
        """Return what else was measured so far."""
        return [] if self._start is None else [self._start.facts()]

    def judge(self, call: Callable[[], object]) -> None:
        """Have `call` judge each step that is not finite. If it raises TrainingStopped, the step is taken back."""
        self._values = StepValues(call, self._now)

    def _keep_values(self) -> None:
        """Keep the weights and the state of the optimizer before a step, if it may have to be taken back."""
        if self._values is not None:
            self._values.clear()
            self._values.add([*self._model.variables, *getattr(self._model.optimizer, "variables", ())])

    def _is_broken(self, logs: Any) -> bool:
        """Whether the loss or the weights after a step are not finite."""
        loss = logs.get("loss") if isinstance(logs, dict) else None
        with own_run():
            values = [*self._model.trainable_variables, *([] if loss is None else [loss])]
            return not all(bool(keras.ops.all(keras.ops.isfinite(value))) for value in values)

    def epoch_begins(self) -> None:
        """Note that Keras' running means start over."""
        self.clock.drop()  # evaluation and checkpoints come between two epochs
        self.read()
        self._loss.epoch_begins()

    def evaluated(self, loss: float) -> None:
        """Take an evaluation loss."""
        if not self._closed:
            self._evaluations.append((max(0, self.steps - 1), float(loss)))

    def history(self) -> TrainingHistory:
        """Return the run so far."""
        rows, samples = self._recorded()
        count = len(rows["steps"])
        rows["training_mode"] = np.full(count, -1 if self._own_step else 1, np.int8)  # `fit` sets it by itself
        rows["passes"] = np.full(count, self._passes)
        return training_history(
            rows,
            samples,
            total_steps=self.steps,
            layers=self._layers,
            memory_holder=self.memory_holder,
            evaluations=list(self._evaluations),
        )

    def _begin(self) -> None:
        self._start = FitStart(self._model, self._optimizer)

    def _take_rows(self, parts: list[Array]) -> None:
        """Let the rows of the batch of this step be hashed."""
        if self._start is not None and self.steps < EARLY:
            self._safely("start", self._start.take, self.steps, parts)

    @abstractmethod
    def _restore(self) -> None:
        """Restore the model."""

    @abstractmethod
    def _release(self) -> None:
        """Let go of what is not needed after the end."""

    @abstractmethod
    def _read(self) -> None:
        """Read what is pending, and call `_was_read`."""

    def _recorded(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the rows of all steps, and of those that were looked at more closely."""
        return self._rows.arrays(), self._samples.arrays()

    def _is_another_fit(self) -> bool:
        """Whether this one raised, and no callback was told; then it is closed."""
        if getattr(self._model, "history", None) is not self._fit:
            self.close()
        return self._closed

    def _was_read(self) -> None:
        """Say how exact the losses are, and pass on what was read."""
        if self._loss.why_not:
            self.uncovered["loss"] = self._loss.why_not
        elif self._loss.remark:
            self.remarks["loss"] = self._loss.remark
        if self.on_read is not None and (self._closed or self._rows.total >= self._handed + self._every):
            self._handed = self._rows.total
            self.on_read()

    def _stop_if_enough(self) -> None:
        if self.on_step is not None and not self._closed:
            self.on_step()
        if self._stop_after is not None and self.steps >= self._stop_after:
            self.close()


class BatchLoss:
    """The loss of one batch after the other.

    Keras adds each loss, times its number of examples, to a sum in float32. The difference of two such sums is the
    loss of the batch between them, but for the rounding of the sum: at batch k of an epoch about k times 6e-8 of
    the mean loss. A `train_step` of the user's own may log something else; then that is taken as it is.

    Attributes:
        remark: how exact the losses are, in words.
        why_not: why there are none; empty if there are.
    """

    def __init__(self, model: keras.Model, current: Callable[[Any], Any]) -> None:
        """Prepare; `current` returns the value of a variable as it is now, not waited for."""
        self._model, self._current = model, current
        self._own_step = has_own_train_step(model)
        self._tracker: Any = None  # the running mean, if the logged loss is one
        self._seen = False
        self._sums = (0.0, 0.0)
        self.remark = self.why_not = ""

    def epoch_begins(self) -> None:
        """Tell that the means begin again. All before must have gone through `value`."""
        self._sums = (0.0, 0.0)

    def ask(self, logs: Any) -> Any:
        """Return, after a step, what `value` will need: tensors, not waited for; None if there is no loss."""
        logged = logs.get("loss") if isinstance(logs, dict) else None
        if not self._seen:
            self._seen = True
            self._find(logged)
        if self._tracker is None:
            return logged
        return self._current(self._tracker.total), self._current(self._tracker.count)

    def value(self, raw: Any) -> float | None:
        """Return the loss of a batch, or the mean over several taken at once; to be called in their order."""
        if raw is None:
            return None
        if not isinstance(raw, tuple):
            return float(np.asarray(raw, dtype=np.float64).mean())
        total, count = map(float, raw)
        before = self._sums if count > self._sums[1] else (0.0, 0.0)  # not more: it was reset in between
        self._sums = (total, count)
        return (total - before[0]) / (count - before[1]) if count > before[1] else None

    def _find(self, logged: Any) -> None:
        """Look for the running mean that the logged loss is."""
        for metric in self._model.metrics:
            if not isinstance(metric, keras.metrics.Mean) or metric.name != "loss" or not number_of(metric.count):
                continue
            mean = number_of(metric.total) / number_of(metric.count)
            if not self._own_step or (logged is not None and _same(mean, float(logged))):
                self._tracker = metric
                self.remark = "computed from Keras' running mean, up to its rounding"
                return
        name = type(self._model).__name__
        if logged is None:
            self.why_not = f"{name}.train_step returns no 'loss'"
        else:
            self.remark = f"as {name}.train_step returns it; whether that is a mean is not known"


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=CLOSE) or not (math.isfinite(one) or math.isfinite(other))


class FitStart:
    """The start of one `fit`, and the rows of its first steps.

    Args:
        model: compiled.
        optimizer: of the model, without any wrapper; None before `compile`.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        with own_run():
            self._settings = {
                "model": type(model).__name__,
                "loss": _name_of(getattr(model, "loss", None)),
                "precision": getattr(getattr(model, "dtype_policy", None), "name", None),
                "jit_compile": getattr(model, "jit_compile", None),
                **_attributes("loss", getattr(model, "loss", None)),
                **{
                    name: value
                    for layer in getattr(model, "layers", ())[:LAYERS]
                    for name, value in _attributes(f"layer {layer.name}", layer).items()
                },
                **_settings(optimizer),
            }
            self._seeds, self._states = _seeds(), states_of_host()
            variables = model.variables if has_parts_weights(model) else []  # else they are made in the first step
            self._weights = hashes_of_weights({one.path: _part_of(one) for one in variables if np.prod(one.shape)})
        self._rows: dict[int, tuple[str, ...]] = {}

    def take(self, step: int, parts: Sequence[Array]) -> None:
        """Take the batch of a step, if it is one of the first."""
        if step < EARLY and step not in self._rows:
            rows = [part for part in parts if part.ndim and part.size and not part.dtype.hasobject]
            self._rows[step] = hashes_of_rows([part_of_rows(part, part.dtype.kind in "iub") for part in rows])

    def facts(self) -> StartFacts:
        """Return all so far."""
        rows = {step: rows for step, rows in self._rows.items() if rows}
        return StartFacts(self._settings, self._seeds, self._states, self._weights, rows)


def _settings(optimizer: Any) -> dict[str, Any]:
    if optimizer is None:
        return {}
    settings: dict[str, Any] = {"optimizer": type(optimizer).__name__}
    if type(optimizer).__module__.startswith("keras."):  # the method of another may do anything
        config = settings_of(optimizer) | {"learning_rate": _rate_setting(optimizer._learning_rate)}
        settings |= plain_settings({name: value for name, value in config.items() if name != "name"})
    return settings


def _rate_setting(rate: Any) -> float | str:
    """Return a learning rate as it was set; a schedule by its class, and with its settings if Keras has it."""
    if isinstance(rate, keras.Variable):
        return number_of(rate)
    name = type(rate).__name__
    return f"{name}({rate.get_config()})" if type(rate).__module__.startswith("keras.") else name


def _attributes(whose: str, of: Any) -> dict[str, Any]:
    """Return the numbers and strings that an object of Keras holds; its `get_config` may call other code."""
    if not type(of).__module__.startswith("keras."):
        return {}
    plain = plain_settings({name: value for name, value in vars(of).items() if name.isidentifier()})
    return {f"{name} of {whose}": value for name, value in plain.items() if name[0] != "_" and name not in NOT_SET}


def _seeds() -> dict[str, Any]:
    seeds: dict[str, Any] = {}
    if "tensorflow" in sys.modules:
        seeds["seed of TensorFlow"] = internals.context.global_seed()
    if keras.backend.backend() == "torch":
        seeds["seed of torch"] = sys.modules["torch"].initial_seed()
    return seeds


def _part_of(variable: Any) -> Array:
    """Copy some numbers of a variable, spread evenly."""
    flat = keras.ops.reshape(keras.ops.stop_gradient(variable.value), (-1,))
    part: Array = keras.ops.convert_to_numpy(flat[:: max(1, -(-int(np.prod(variable.shape)) // NUMBERS))])
    return part


def _name_of(loss: Any) -> str | None:
    if loss is None or isinstance(loss, str):
        return loss
    return str(getattr(loss, "__name__", type(loss).__name__))


class WrappedStep:
    """Takes the place of `train_function`.

    Args:
        original: what it wraps; of a fit that failed and did not restore it, what that wrapped.
        take: called in its place; once this is None, calls are only passed through.
    """

    def __init__(self, original: Any, take: Callable[[Any], Any]) -> None:
        self.original: Callable[[Any], Any] = original.original if isinstance(original, WrappedStep) else original
        self.take: Callable[[Any], Any] | None = take

    def __call__(self, given: Any) -> Any:
        """Take a step."""
        return self.original(given) if self.take is None else self.take(given)
