"""Keeps how the training of a Keras model began, and its batches, so that copies can be trained after it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import keras

from diagnostics.collectors.keras.batch import as_array, unpack
from diagnostics.collectors.keras.dependence.subject import size_of
from diagnostics.collectors.keras.harmless import of_optimizer
from diagnostics.collectors.keras.losses import contract_as_set
from diagnostics.collectors.keras.model import has_own_loss, has_own_train_step, has_weights
from diagnostics.collectors.keras.optimizer import full_rate, inner_optimizer, settings_of
from diagnostics.collectors.keras.values import array_of, number_of
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed
from diagnostics.facts.array import Array

MOST = 150  # batches
MOST_BYTES = 16 * 2**20  # of them all, and of the weights of one model
UNKNOWN_LOSS = "its loss is not one of Keras' own, of one output"
WEIGHTED = "its loss weighs rows"
NO_OPTIMIZER = "its optimizer cannot be built for a copy"


@dataclass
class KeptTraining:
    """How a training began.

    Attributes:
        optimizer: its class.
        settings: from which one like it is built.
        rate: its full learning rate.
        values: of the weights, in the order of the model; empty until it has made them, in its first step.
        trained: whether each layer was trainable, in the order in which Keras walks them.
        batches: inputs by their place, and target, in the order in which they were trained on.
        rates: the learning rate of each, as far as the script or a callback sets it.
        structure: of the inputs, with a number in the place of each; None before the first batch.
        why_not: why copies cannot be trained on these batches; empty if they can.
    """

    optimizer: type[keras.optimizers.Optimizer]
    settings: Mapping[str, Any]
    rate: float
    values: list[Array] = field(default_factory=list)
    trained: tuple[bool, ...] = ()
    batches: list[tuple[dict[str, Array], Array]] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    structure: Any = None
    why_not: str = ""
    _nbytes: int = 0
    _held: Callable[[], Any] = lambda: None
    _model: Callable[[], Any] = lambda: None

    def begin(self) -> None:
        """Copy the weights, if they are there."""
        model = self._model()
        if model is None or not has_weights(model):
            return
        if size_of(model) > MOST_BYTES:
            self.why_not = f"its weights take more than {MOST_BYTES // 2**20} MiB"
        elif any(layer.compute_dtype in ("float16", "bfloat16") for layer in model._flatten_layers()):
            self.why_not = "its layers compute in half precision"
        else:
            self.values = [array_of(weight) for weight in model.weights]
            self.trained = tuple(layer.trainable for layer in model._flatten_layers())

    def take(self, batch: Any) -> None:
        """Copy a batch as `train_step` gets it, unless there are enough."""
        if not self.values and not self.why_not:
            self.begin()
        if not self.values or self.why_not or len(self.batches) >= MOST or self._nbytes > MOST_BYTES:
            return
        try:
            x, y, weights = unpack(batch)
        except StageFailed:
            self.why_not = "its batches are not inputs and targets"
            return
        inputs = [as_array(part) for part in keras.tree.flatten(x)]
        target = None if y is None or keras.tree.is_nested(y) else as_array(y)
        held = [part for part in inputs if part is not None and part.ndim]
        if target is None or not held or len(held) < len(inputs):
            self.why_not = "its batches are not arrays of inputs and of one target"
        elif weights is not None:
            self.why_not = WEIGHTED
        if self.why_not or target is None:
            self.batches.clear()
            return
        kept = {str(place): part.copy() for place, part in enumerate(held)}
        self.structure = keras.tree.map_structure(lambda _: 0, x)
        self.batches.append((kept, target.copy()))
        self.rates.append(self._rate())
        self._nbytes += target.nbytes + sum(part.nbytes for part in held)

    def _rate(self) -> float:
        rate = getattr(self._held(), "_learning_rate", None)
        return number_of(rate) if isinstance(rate, keras.Variable) else self.rate

    def take_call(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, *_: Any, **__: Any
    ) -> None:
        """Copy a batch as `train_on_batch` gets it, likewise."""
        if class_weight:
            self.why_not = WEIGHTED
        self.take((x, y, sample_weight))


def keep_training(model: keras.Model) -> KeptTraining | str:
    """Copy what a training of the model begins with; say why copies cannot be trained, if so."""
    if has_own_train_step(model) or has_own_loss(model) or contract_as_set(model.loss).targets is None:
        return UNKNOWN_LOSS
    optimizer = inner_optimizer(model)
    if optimizer is None or of_optimizer(optimizer).objection is not None:
        return NO_OPTIMIZER
    try:
        rate, settings = full_rate(optimizer), settings_of(optimizer)
    except CannotJudge:
        return NO_OPTIMIZER
    kept = KeptTraining(type(optimizer), settings, rate, _held=weakref.ref(optimizer), _model=weakref.ref(model))
    kept.begin()
    return kept
