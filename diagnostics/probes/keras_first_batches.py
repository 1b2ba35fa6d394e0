"""Examines the first batches that a running `fit` draws, where nothing may be read beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from diagnostics.facts import Fact, OutputFacts
from diagnostics.own_runs import own_warnings_ignored

from .keras_data import KerasData, SeenRows, rows_in
from .keras_model import describe_model, has_weights
from .keras_pipeline import KerasPipeline
from .keras_replayable import runs_python, shuffles
from .keras_state import draws_numbers, global_states_kept, own_loss
from .loss_recognition import Recognised
from .pipeline import CannotJudge, Pipeline, StageFailed

SECONDS_LOOKING = 0.5  # at rows of the batches, all together: the script waits meanwhile
NO_BATCH = "its fit was not seen to draw a batch"


class FirstBatches:
    """Is given the batches of a `fit` one after the other, each before its step, until it has seen enough.

    The first is examined; where the model makes its weights in its first step, the second. The rows of the first
    few are facts about the dataset. No batch is kept.

    Args:
        model: compiled.
        data: what `fit` was given; only its structure is looked at.
        class_weights: whether `fit` was given any; None if not known.
        examine: takes the pipeline to be walked.
        add: takes what the rows showed, and what else is needed to judge it, once.
        unseen: told why no batch could be examined.
        fault: is given what goes wrong in here.
    """

    def __init__(
        self,
        model: keras.Model,
        data: Any,
        class_weights: bool | None,
        *,
        examine: Callable[[Pipeline], object],
        add: Callable[[tuple[Fact, ...]], object],
        unseen: Callable[[str], object],
        fault: Callable[[Exception], object],
    ) -> None:
        self._model, self._class_weights = model, class_weights
        self._examine, self._add, self._unseen, self._fault = examine, add, unseen, fault
        self._size = rows_in(data) if isinstance(data, tf.data.Dataset) else None
        self._shuffled, self._concurrent = shuffles(data), runs_python(data)
        self._rows = SeenRows(SECONDS_LOOKING)
        self._outputs: OutputFacts | None = None
        self._taken = 0
        self._examined = self._closed = False

    def take(self, batch: Any, why_not: str) -> bool:
        """Look at a batch that is about to be trained on; return whether more are wanted.

        Args:
            batch: as `train_step` gets it; None if it could not be seen.
            why_not: why it could not, in words.
        """
        try:
            if batch is None:
                self.close(why_not)
                return False
            self._taken += 1
            if not self._examined and has_weights(self._model):
                self._examined = True
                self._look(batch)
            self._rows.add(batch)
            if self._rows.complete and self._examined:
                self.close()
        except Exception as fault:
            self._closed = True
            self._fault(fault)
        return not self._closed

    def close(self, why_not: str = "") -> None:
        """Judge what was seen; call it when `fit` is over."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self._examined:
                made = "the model makes its weights in its first step, and there was no second"
                self._unseen(why_not or (made if self._taken else NO_BATCH))
                return
            model, rows = describe_model(self._model), self._rows.facts(self._size, self._shuffled)
            self._add((model, rows) if self._outputs is None else (model, rows, self._outputs))
        except StageFailed:  # batches of a structure that `fit` refuses
            return
        except Exception as fault:
            self._fault(fault)

    def _look(self, batch: Any) -> None:
        pipeline = _FirstBatch(self._model, batch, self._class_weights, self._concurrent, self._taken > 1)
        self._examine(pipeline)
        self._outputs = pipeline.outputs


class _FirstBatch(KerasPipeline):
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
