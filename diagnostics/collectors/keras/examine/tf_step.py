"""Examines a batch drawn by a running `fit` on TensorFlow, where no other data may be read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.keras.batch import as_array
from diagnostics.collectors.keras.data import KerasData, rows_in
from diagnostics.collectors.keras.examine.pipeline import KerasPipeline
from diagnostics.collectors.keras.losses import own_loss
from diagnostics.collectors.keras.model import describe_model, has_parts_weights
from diagnostics.collectors.keras.optimizer import full_rate, inner_optimizer, optimizer_facts, steps_made
from diagnostics.collectors.keras.replayable import runs_python, shuffles
from diagnostics.collectors.keras.state import draws_numbers, global_states_kept
from diagnostics.collectors.keras.weights import LIMIT
from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.overfit_plan import POOL_BATCHES, Pool, train_in_turns
from diagnostics.collectors.shared.pipeline import CannotJudge, UsersCodeRaised, users_code
from diagnostics.facts.pipeline import Fact, LossFacts, OutputFacts

from .drawn_batches import FirstBatches, Listeners


class TensorFlowBatches(FirstBatches):
    """Examines the first batch before its step; the second, where the model makes its weights in the first.

    Args:
        model: compiled.
        data: what `fit` was given; only its structure is looked at.
        class_weights: whether `fit` was given any; None if not known.
        listeners: see `FirstBatches`.
    """

    def __init__(self, model: keras.Model, data: Any, class_weights: bool | None, listeners: Listeners) -> None:
        super().__init__(model, listeners)
        self.size = rows_in(data) if isinstance(data, tf.data.Dataset) else None
        self.shuffled = shuffles(data)
        self._class_weights, self._concurrent = class_weights, runs_python(data)
        self._trial: _FitBatch | None = None  # waits for further batches

    def look(self, batch: Any) -> None:
        """See `FirstBatches.look`."""
        if has_parts_weights(self.model):
            pipeline = _FitBatch(self.model, batch, self._class_weights, self._concurrent, self.taken > 1)
            self.walk(pipeline)
            self._trial = pipeline if pipeline.awaits_pool else None

    def further(self, batch: Any) -> bool:
        """See `FirstBatches.further`. Trains a copy on the first few in turn, where one alone settles nothing."""
        if self._trial is not None and self._trial.collect(batch):
            self.finish()
        return self._trial is not None

    def finish(self) -> None:
        """See `FirstBatches.finish`."""
        trial, self._trial = self._trial, None
        if trial is not None and (facts := trial.train_in_turns()):
            self._listeners.add(facts, "one-batch overfit")


class _FitBatch(KerasPipeline):
    """The pipeline of a `fit` that is under way, from one batch that it has drawn. Nothing else is read.

    Args:
        concurrent: whether Python code that loads data may run in other threads meanwhile.
        stepped: whether the model has learned already.
    """

    preprocesses = False  # the batch is what `train_step` gets
    must_go_unnoticed = True

    def __init__(
        self, model: keras.Model, batch: Any, class_weights: bool | None, concurrent: bool, stepped: bool
    ) -> None:
        super().__init__(model, [batch], None, class_weights)
        self.name = f"{type(model).__name__} with a batch that its fit has drawn"
        self.outputs: OutputFacts | None = None
        self.awaits_pool = False
        self._loss: LossFacts | None = None
        self._examined_batch = batch
        self._collected: list[Any] = []
        self._concurrent, self._stepped = concurrent, stepped

    def collect(self, batch: Any) -> bool:
        """Keep a batch for a pool of several, the examined one not; return whether there are enough."""
        if batch is not self._examined_batch:
            self._collected.append(batch)
        return len(self._collected) >= POOL_BATCHES - 1

    def train_in_turns(self) -> tuple[Fact, ...]:
        """Train a copy of the model as it was at first on the batches in turn; return what judges it."""
        rate = full_rate(self.model.optimizer)
        if self._loss is None or not rate:
            return ()
        with own_run(), self.untouched(), suppress(CannotJudge, UsersCodeRaised), users_code():
            trial = train_in_turns(self._train_copy, super()._pool(), rate)
            if trial is not None:
                return trial, self._loss, describe_model(self.model), optimizer_facts(self.model)
        return ()

    def _pool(self) -> Pool | None:
        """Wait for the batches that `fit` is yet to draw."""
        assert self._copy is not None
        values = (*self.model.trainable_variables, *self.model.non_trainable_variables)
        kept = sum(int(np.prod(v.shape)) * tf.as_dtype(v.dtype).size for v in values)
        parts = [part for part in tf.nest.flatten(self._examined_batch) if tf.is_tensor(part)]
        kept += POOL_BATCHES * sum(part.dtype.size * int(tf.size(part)) for part in parts)
        if kept <= LIMIT:
            self._copy.hold_start()
            self.awaits_pool = True
        return None

    def _further_batches(self) -> Iterator[Any]:
        return iter(self._collected)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """See `Pipeline.untouched`."""
        if not self._concurrent:
            with super().untouched():
                yield
            return
        with global_states_kept(random_states=False), own_loss(self.model), own_warnings_ignored():
            yield

    def dataset(self) -> Iterator[Fact]:
        """See `Pipeline.dataset`. Its rows are judged once a few batches were drawn."""
        yield describe_model(self.model)
        self._data = KerasData(self._given)

    def forward(self) -> Iterator[Fact]:
        """See `Pipeline.forward`."""
        if self._concurrent and draws_numbers(self.model):
            raise CannotJudge(
                "the model's own code draws random numbers, and so may the code that loads the data meanwhile: to "
                "run a copy of the model could change which numbers they get"
            )
        for fact in super().forward():
            if isinstance(fact, OutputFacts):
                self.outputs = fact
            if isinstance(fact, LossFacts):
                self._loss = fact
            yield fact

    def _recognise(self, value: float, prediction: Any, penalty: float) -> Recognised:
        found = super()._recognise(value, prediction, penalty)
        return dataclasses.replace(found, floor=None) if self._stepped else found


class HandedBatch(_FitBatch):
    """The pipeline of a `train_on_batch`, from the batch that it is handed; other batches are not waited for.

    Args:
        stepped: whether the model has learned already.
    """

    def __init__(self, model: keras.Model, batch: Any, class_weights: bool, stepped: bool) -> None:
        super().__init__(model, batch, class_weights, concurrent=False, stepped=stepped)
        self.name = f"{type(model).__name__} with a batch that train_on_batch was given"

    def dataset(self) -> Iterator[Fact]:
        """See `Pipeline.dataset`."""
        if has_parts_weights(self.model):
            yield describe_model(self.model)
        self._data = KerasData(self._given)

    def _pool(self) -> Pool | None:
        return None


def handed_batch(
    model: keras.Model,
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    class_weight: Any = None,
    *_: Any,
    **__: Any,
) -> HandedBatch | None:
    """Return the pipeline of a `train_on_batch`, from its arguments.

    None while the model lacks its weights, and for a batch of zeros or the like, which some give it to make them.
    """
    arrays = [array for array in map(as_array, keras.tree.flatten(x)) if array is not None and array.size]
    if all((array == array.flat[0]).all() for array in arrays):
        return None
    can_be_built = has_parts_weights(model) or isinstance(model, keras.Sequential)
    if not getattr(model, "compiled", False) or not can_be_built:
        return None
    batch = (x,) if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)
    return HandedBatch(model, batch, bool(class_weight), steps_made(inner_optimizer(model)) > 0)
