"""The pipeline of the first step of a `fit` on Keras' PyTorch backend, as recorded: nothing is run again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import keras
import numpy as np
import torch

from diagnostics.collectors.keras.batch import as_array, batch_facts, unpack
from diagnostics.collectors.keras.losses import as_written, output_facts, recognise_loss, weighs_classes
from diagnostics.collectors.keras.model import (
    NOT_OFFERED,
    describe_model,
    gradient_facts,
    has_weights,
    last_activation,
)
from diagnostics.collectors.keras.optimizer import optimizer_facts
from diagnostics.collectors.keras.watch.torch_watcher import SeenStep
from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.pipeline import CannotJudge, Pipeline
from diagnostics.facts.array import Array
from diagnostics.facts.pipeline import Fact, LossFacts, OutputFacts

from .drawn_batches import FirstBatches, Listeners


class TorchStepPipeline(Pipeline):
    """A `Pipeline` of what a step has computed by itself.

    Args:
        model: compiled.
        seen: its first step.
        class_weights: whether `fit` was given any; None if not known.
    """

    not_offered: Mapping[str, str] = {
        **NOT_OFFERED,
        "overfit": "no copy is trained on Keras' PyTorch backend; Keras on TensorFlow is covered",
    }

    def __init__(self, model: keras.Model, seen: SeenStep, class_weights: bool | None) -> None:
        self._model, self._seen, self._class_weights = model, seen, class_weights
        self.outputs: OutputFacts | None = None
        self.name = f"the first step of {type(model).__name__}, on Keras' PyTorch backend"

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """See `Pipeline.untouched`."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            yield

    def dataset(self) -> Iterator[Fact]:
        """See `Pipeline.dataset`. Its rows are judged once a few batches were drawn."""
        if has_weights(self._model):
            yield describe_model(self._model)

    def batch(self) -> Iterator[Fact]:
        """See `Pipeline.batch`."""
        if self._seen.batch is None:
            raise CannotJudge("the batch was not seen")
        x, y, _ = unpack(self._seen.batch)
        yield batch_facts(x, y, self._model.loss)

    def forward(self) -> Iterator[Fact]:
        """See `Pipeline.forward`."""
        seen, prediction = self._seen, self._prediction()
        if seen.prediction is None:
            raise CannotJudge(f"{type(self._model).__name__} does not compute its loss the way Keras does")
        _, y, sample_weight = unpack(seen.batch)
        target = None if keras.tree.is_nested(y) or y is None else as_array(y)
        self.outputs = output_facts(prediction, self._model.loss, last_activation(self._model), target)
        yield self.outputs
        if not isinstance(seen.loss, torch.Tensor) or seen.loss.numel() != 1:
            raise CannotJudge("no loss was computed")
        value, found = float(seen.loss), Recognised()
        if prediction is not None and target is not None:
            found = recognise_loss(value, prediction, target, self._model.loss, self.outputs.last_activation)
        yield LossFacts(
            value=value,
            kind=found.kind,
            constant_baseline_loss=found.floor,
            class_weights=weighs_classes(self._model.loss, sample_weight is not None, self._class_weights),
            reads=found.reads,
            broadcast=found.broadcast,
            name=as_written(self._model.loss),
        )

    def backward(self) -> Iterator[Fact]:
        """See `Pipeline.backward`."""
        variables = self._model.trainable_variables
        norms = {v.path: float(v.value.grad.float().norm()) for v in variables if v.value.grad is not None}
        if not norms:
            raise CannotJudge("the step left no gradients")
        yield gradient_facts(self._model, norms)

    def optimizer_step(self) -> Iterator[Fact]:
        """See `Pipeline.optimizer_step`."""
        if self._model.optimizer is None:
            raise CannotJudge("the model has no optimizer")
        yield optimizer_facts(self._model)

    def _prediction(self) -> Array | None:
        """Return the prediction (n, ...) in float32 if there is one output, else None."""
        flat = [part for part in keras.tree.flatten(self._seen.prediction) if part is not None]
        array = as_array(flat[0]) if len(flat) == 1 else None
        return None if array is None else array.astype(np.float32, copy=False)


class TorchBatches(FirstBatches):
    """Examines the first step of a `fit` by what it has computed itself, and takes the batches after their steps.

    Args:
        model: compiled.
        class_weights: whether `fit` was given any; None if not known.
        listeners: see `FirstBatches`.
    """

    def __init__(self, model: keras.Model, class_weights: bool | None, listeners: Listeners) -> None:
        super().__init__(model, listeners)
        self._class_weights = class_weights

    def first_step(self, seen: SeenStep) -> None:
        """Take the first step, which may have raised."""
        try:
            self.walk(TorchStepPipeline(self.model, seen, self._class_weights))
        except Exception as fault:
            self._listeners.fault(fault)
