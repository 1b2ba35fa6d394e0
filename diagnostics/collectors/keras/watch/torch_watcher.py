"""Watches one `fit` of a Keras model on the PyTorch backend, step by step. Imports no TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import torch

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.keras.batch import as_array, fingerprint, named, unpack
from diagnostics.collectors.keras.model import has_weights
from diagnostics.collectors.keras.values import number_of
from diagnostics.collectors.shared.history import History, is_sampled_step
from diagnostics.collectors.system.host_memory import resident_memory
from diagnostics.facts.array import Array
from diagnostics.facts.nonfinite import OriginFacts, OriginKind

from .fit_watcher import FitWatcher, WrappedStep, gradient_fields, sample_fields

LIMIT = 512 * 2**20  # bytes of weights; a model that is larger is not copied
NOT_REPLAYED = "no step is replayed on Keras' PyTorch backend"


@dataclass
class SeenStep:
    """What a step computed.

    Attributes:
        batch: as `train_step` gets it.
        prediction: what the model returned, a tensor or a structure of them; None if it was not seen.
        loss: the number that the backward pass begins with; None if it was not seen, or did not come to that.
    """

    batch: Any
    prediction: Any = None
    loss: Any = None


class KerasTorchWatcher(FitWatcher):
    """Records the steps of a `fit` by wrapping its `train_function`; runs nothing again. See `FitWatcher`.

    Attributes:
        on_first_step: called with the first step, also if it raised.
    """

    def __init__(self, model: keras.Model, every: int, stop_after: int | None = None) -> None:
        super().__init__(model, every, stop_after, _current, {"weights": NOT_REPLAYED})
        self._safely = self._without_gradients
        self.on_first_step: Callable[[SeenStep], object] | None = None
        self._compares = False  # whether weights are compared with those before a step
        self._variables: list[Any] = []
        self._of_variable: Array = np.zeros(0, np.int64)
        self._gradients = History(gradient_fields(0))
        self._before_step: list[torch.Tensor] | None = None
        self._pending: list[tuple[tuple[Any, ...], Any, Any]] = []
        self._step = WrappedStep(model.train_function, self.take_step)
        self._original = self._step.original
        model.train_function = self._step

    def _restore(self) -> None:
        if self._model.train_function is self._step:
            self._model.train_function = self._original
        self._step.take = None

    def _release(self) -> None:
        self._before_step = None

    def _recorded(self) -> tuple[dict[str, Array], dict[str, Array]]:
        rows, samples = super()._recorded()
        return rows | self._gradients.arrays(), samples

    # Around each step.

    def take_step(self, data: Any) -> Any:
        """Take one step, and record it."""
        if self._is_another_fit():
            return self._original(data)
        self._safely("steps", self._before)
        seen = SeenStep(data[0] if isinstance(data, list) and len(data) == 1 else None)
        first, self.on_first_step = self.on_first_step, None
        try:
            logs = self._original(data) if first is None else self._captured(data, seen)
        finally:
            if first is not None:
                with torch.no_grad(), own_run():
                    first(seen)
        self._safely("steps", self._after, seen.batch, logs)
        return logs

    def _captured(self, data: Any, seen: SeenStep) -> Any:
        """Take a step, and capture its prediction and loss."""
        compute = self._model._compute_loss

        def computed(x: Any = None, y: Any = None, y_pred: Any = None, *rest: Any, **options: Any) -> Any:
            seen.prediction = keras.tree.map_structure(_detached, y_pred)
            loss = compute(x, y, y_pred, *rest, **options)
            seen.loss = _detached(loss)
            return loss

        vars(self._model)["_compute_loss"] = computed  # past Keras' tracking of attributes
        try:
            return self._original(data)
        finally:
            vars(self._model).pop("_compute_loss", None)

    def _before(self) -> None:
        if not self._variables and has_weights(self._model):
            self._build()
        if self.over_time is not None and self._variables:
            self.over_time.before_step(self.steps)
        self._keep_values()
        wanted = self._compares and is_sampled_step(self.steps, self._every)
        self._before_step = [_current(v) for v in self._variables] if wanted else None

    def _after(self, batch: Any, logs: Any) -> None:
        parts = [] if batch is None else [as_array(part) for part in keras.tree.flatten(batch)]
        arrays = [part for part in parts if part is not None]
        self._take_rows(arrays)
        norms = self._gradient_norms()
        if self._before_step is not None:
            ratios, sizes = self._measure(self._before_step)
            self._samples.append((self.steps, ratios, sizes, resident_memory()))
            self._before_step = None
        size = next((len(part) for part in arrays if part.ndim), 0)
        row = (self.steps, self._rate(), fingerprint(arrays) if arrays else 0, size)
        self._pending.append((row, self._loss.ask(logs), norms))
        self.steps += 1
        self.forwards = self.steps
        on_host = norms is None or norms.device.type == "cpu"
        if on_host or len(self._pending) >= self._every:
            self.read()
        if self.origin is not None and self.origin.kind is None and self.origin.step == self.steps - 1:
            self._blame(batch)
        if batch is not None and self.first_batches is not None and not self.first_batches(batch, ""):
            self.first_batches = None
        if (values := self._values) is not None and values.wants and self._is_broken(logs):
            self.read()
            values.judge()
        self._stop_if_enough()

    def _without_gradients(self, part: str, work: Callable[..., None], *given: Any) -> None:
        with torch.no_grad():
            self._guard.run(part, work, *given)

    # Measuring.

    def _build(self) -> None:
        self._variables = list(self._model.trainable_variables)
        if self._passes > 1:
            self.uncovered["updates"] = f"the optimizer steps once in {self._passes} batches"
        elif sum(v.value.nbytes for v in self._variables) > LIMIT:
            self.uncovered["updates"] = f"the weights take more than {LIMIT // 2**20} MiB and were not copied"
        self._compares = "updates" not in self.uncovered
        owners = [v.path.rpartition("/")[0] or self._model.name for v in self._variables]
        self._layers = tuple(dict.fromkeys(owners))
        self._of_variable = np.array([self._layers.index(owner) for owner in owners], dtype=np.int64)
        self._samples = History(sample_fields(len(self._layers)))
        self._gradients = History(gradient_fields(len(self._layers)))
        for _ in range(self._rows.total):  # steps read before the model had weights
            self._gradients.append((0.0, np.zeros(len(self._layers)), False))

    def _gradient_norms(self) -> Any:
        """Return a tensor (variables,) of the gradients' norms as the step left them; None if it left none."""
        if self._own_step or not self._variables:
            return None
        gradients = [v.value.grad for v in self._variables]
        there = [g is not None and g.layout is torch.strided for g in gradients]
        dense = [g for g, known in zip(gradients, there, strict=True) if known]
        if not dense:
            return None
        norms = iter(torch._foreach_norm(dense))
        nothing = dense[0].new_zeros((), dtype=torch.float32)
        return torch.stack([next(norms).float() if known else nothing for known in there])

    def _measure(self, before: list[torch.Tensor]) -> tuple[Array, Array]:
        changes = [
            torch.stack([old.float().norm(), (v.value.detach().float() - old.float()).norm()])
            for old, v in zip(before, self._variables, strict=True)
        ]
        sizes, moved = torch.stack(changes, 1).cpu().numpy().astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            weights, updates = self._by_layer(sizes), self._by_layer(moved)
            return np.where(updates == 0, 0.0, updates / weights).astype(np.float32), weights.astype(np.float32)

    def _by_layer(self, norms: Array) -> Array:
        squares: Array = np.bincount(self._of_variable, np.square(norms), minlength=len(self._layers))
        return np.sqrt(squares)

    def _rate(self) -> float:
        if self._optimizer is None or (self._own_step and not self._optimizer.built):
            return math.nan
        if "learning rate" in self.uncovered:
            return math.nan
        return number_of(self._optimizer.learning_rate)

    # Reading.

    def _read(self) -> None:
        pending, self._pending = self._pending, []
        for (step, rate, number, size), raw, norms in pending:
            loss = self._loss.value(raw)
            self._rows.append((step, math.nan if loss is None else loss, loss is not None, [rate], number, size))
            with np.errstate(over="ignore", invalid="ignore"):
                values = (
                    np.zeros(len(self._variables)) if norms is None else norms.cpu().numpy().astype(np.float64)
                )
                by_layer = self._by_layer(values)
                total = float(np.sqrt(np.square(values).sum()))
            self._gradients.append((total, by_layer, norms is not None))
            if self.origin is None and loss is not None and not math.isfinite(loss):
                self.origin = self._origin(None, step, loss=loss, batch_size=size or None, learning_rate=rate)
        if self._own_step:
            self.uncovered["gradients"] = f"{type(self._model).__name__} has a train_step of its own"
        self._was_read()

    def _origin(self, kind: OriginKind | None, step: int, **known: Any) -> OriginFacts:
        known |= {"num_parameters": len(self._variables), "reason": NOT_REPLAYED}
        return OriginFacts(step, kind, False, max(self.steps - 1, step), **known)

    def _blame(self, batch: Any) -> None:
        """Name the batch as the origin if it holds NaN or inf."""
        if batch is None or self.origin is None:
            return
        x, _, _ = unpack(batch)
        arrays = {name: as_array(value) for name, value in named(x).items()}
        broken = {
            name: ~np.isfinite(array).reshape(len(array), -1).all(1)
            for name, array in arrays.items()
            if array is not None and array.ndim and array.dtype.kind == "f" and not np.isfinite(array).all()
        }
        if broken:
            rows = tuple(np.flatnonzero(np.any(list(broken.values()), axis=0)).tolist())
            known = {"loss": self.origin.loss, "batch_size": self.origin.batch_size}
            rate = self.origin.learning_rate
            self.origin = self._origin(
                "input", self.origin.step, inputs=tuple(broken), rows=rows, learning_rate=rate, **known
            )


def _current(variable: Any) -> torch.Tensor:
    """Return the value of a variable as it is now, not waited for."""
    value: torch.Tensor = variable.value.detach().clone()
    return value


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value
