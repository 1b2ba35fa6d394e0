"""Examines a batch that a running `fit` on TensorFlow has drawn, where nothing may be read beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from diagnostics.facts import Fact, OutputFacts
from diagnostics.own_runs import own_warnings_ignored

from .keras_data import KerasData, rows_in
from .keras_first_batches import FirstBatches, Listeners
from .keras_model import describe_model, has_weights
from .keras_pipeline import KerasPipeline
from .keras_replayable import runs_python, shuffles
from .keras_state import draws_numbers, global_states_kept, own_loss
from .loss_recognition import Recognised
from .pipeline import CannotJudge


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

    def look(self, batch: Any) -> None:
        """See `FirstBatches.look`."""
        if has_weights(self.model):
            self.walk(_FitBatch(self.model, batch, self._class_weights, self._concurrent, self.taken > 1))


class _FitBatch(KerasPipeline):
    """The pipeline of a `fit` that is under way, from one batch that it has drawn. Nothing else is read.

    Args:
        concurrent: whether Python code that loads data may run in other threads meanwhile.
        stepped: whether the model has learned already.
    """

    preprocesses = False  # the batch is what `train_step` gets

    def __init__(
        self, model: keras.Model, batch: Any, class_weights: bool | None, concurrent: bool, stepped: bool
    ) -> None:
        super().__init__(model, [batch], None, class_weights)
        self.name = f"{type(model).__name__} with a batch that its fit has drawn"
        self.outputs: OutputFacts | None = None
        self._concurrent, self._stepped = concurrent, stepped

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
            yield fact

    def _recognise(self, value: float, prediction: Any, penalty: float) -> Recognised:
        found = super()._recognise(value, prediction, penalty)
        return dataclasses.replace(found, floor=None) if self._stepped else found
