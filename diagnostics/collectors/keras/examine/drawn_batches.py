"""Examines the first batches that a running `fit` draws, on any backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras

from diagnostics.collectors.keras.batch import SeenRows
from diagnostics.collectors.keras.losses import classifies
from diagnostics.collectors.keras.model import describe_model
from diagnostics.collectors.shared.pipeline import Pipeline, StageFailed
from diagnostics.facts.pipeline import Fact, OutputFacts

SECONDS_LOOKING = 0.5  # at rows of all batches together, while the script waits
NO_BATCH = "no batch of its fit was seen"
NAMES = {"jax": "JAX", "torch": "PyTorch", "numpy": "NumPy", "openvino": "OpenVINO"}


@dataclass(frozen=True)
class Listeners:
    """Callbacks for events of a `fit`.

    Attributes:
        examine: called with the pipeline to be walked.
        add: called with facts of further batches, facts needed to evaluate them, and the stage to show them with.
        unseen: called with the reason why no batch could be examined.
        fault: called with each fault of this library.
    """

    examine: Callable[[Pipeline], object]
    add: Callable[[tuple[Fact, ...], str], object]
    unseen: Callable[[str], object]
    fault: Callable[[Exception], object]


class FirstBatches:
    """Takes the batches of a `fit` one by one, until it has enough.

    One batch is examined, see `look`. The rows of the first few are facts about the dataset.

    Attributes:
        model: compiled.
        size: rows of the dataset; None if not known.
        shuffled: whether training sees them in random order; None if not known.
        taken: batches so far.
        examined: whether one of them was examined.
    """

    size: int | None = None
    shuffled: bool | None = None

    def __init__(self, model: keras.Model, listeners: Listeners) -> None:
        self.model, self._listeners = model, listeners
        self._rows = SeenRows(SECONDS_LOOKING, classifies(model.loss))
        self._outputs: OutputFacts | None = None
        self.taken = 0
        self.examined = self._closed = False

    def look(self, batch: Any) -> None:
        """Examine a batch, if it is the one to examine; called until `examined`."""

    def further(self, batch: Any) -> bool:
        """Take a batch after the one that was examined; return whether more of them are wanted."""
        return False

    def finish(self) -> None:
        """Use the batches of `further` that are not used yet."""

    def walk(self, pipeline: Any) -> None:
        """Examine a pipeline, and keep its `outputs` for the facts about rows."""
        self.examined = True
        self._listeners.examine(pipeline)
        self._outputs = pipeline.outputs

    def take(self, batch: Any, why_not: str = "") -> bool:
        """Take a batch; return whether more are wanted.

        Args:
            batch: as `train_step` gets it; None if it is not known.
            why_not: the reason, if it is not known.
        """
        if self._closed:
            return False
        try:
            if batch is None:
                self.close(why_not)
                return False
            self.taken += 1
            if not self.examined:
                self.look(batch)
            more = self.examined and self.further(batch)
            if not self._rows.complete:
                self._rows.add(batch)
            if self._rows.complete and self.examined and not more:
                self.close()
        except Exception as fault:
            self._closed = True
            self._listeners.fault(fault)
        return not self._closed

    def epoch_ends(self) -> None:
        """Take nothing from a second epoch: its rows are the same."""
        if self.examined:
            self.close()

    def close(self, why_not: str = "") -> None:
        """Deliver the facts about the rows; called when `fit` is over."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self.examined:
                made = "the model creates its weights in its first step, and there was no second step"
                self._listeners.unseen(why_not or (made if self.taken else NO_BATCH))
            elif self.taken:
                self.finish()
                model, rows = describe_model(self.model), self._rows.facts(self.size, self.shuffled)
                facts = (rows, model) if self._outputs is None else (rows, model, self._outputs)
                self._listeners.add(facts, "dataset")
        except StageFailed:  # batches of a structure that `fit` refuses
            return
        except Exception as fault:
            self._listeners.fault(fault)


class _NotCovered(FirstBatches):
    """Reports that a `fit` on another backend is not covered."""

    def close(self, why_not: str = "") -> None:
        """See `FirstBatches.close`."""
        name = NAMES.get(keras.backend.backend(), keras.backend.backend())
        super().close(
            f"Keras runs on {name} here: neither the data nor the loss, the gradients or the weights of this fit "
            "were looked at. Keras on TensorFlow and on PyTorch is covered: KERAS_BACKEND=tensorflow or torch"
        )


def first_batches(model: keras.Model, data: Any, class_weights: bool | None, listeners: Listeners) -> FirstBatches:
    """Return what looks at the batches of a `fit` on the backend that is in use.

    Args:
        model: compiled.
        data: what `fit` was given; only its structure is looked at.
        class_weights: whether `fit` was given any; None if not known.
        listeners: called with the results.
    """
    match keras.backend.backend():
        case "tensorflow":
            from .tf_step import TensorFlowBatches

            return TensorFlowBatches(model, data, class_weights, listeners)
        case "torch":
            from .torch_step import TorchBatches

            return TorchBatches(model, class_weights, listeners)
    return _NotCovered(model, listeners)
