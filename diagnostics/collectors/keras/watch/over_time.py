"""Looks at a fixed batch and at the layers of a Keras model, on any backend, before chosen steps of a `fit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.keras.batch import TEXT, as_array, is_one_hot
from diagnostics.collectors.keras.losses import kind_of_loss, own_loss
from diagnostics.collectors.shared.over_time import (
    EXAMPLES,
    LAYERS,
    MAX_LOOKS,
    CannotDecode,
    decoded,
    histogram_of,
    is_look_step,
    prediction_texts,
    stride_for,
    target_texts,
)
from diagnostics.errors import InvalidInput, typed_message, what
from diagnostics.facts.array import Array
from diagnostics.facts.over_time import FixedBatchFacts, Histogram, LayerHistograms, Look
from diagnostics.fixed_batch import FixedBatch
from diagnostics.text.join import count_of

BATCH, HISTOGRAMS = "fixed batch", "histograms"
OnLook = Callable[[Look | None, LayerHistograms | None], None]


class HeldBatch:
    """The user's batch: a copy, which what he does to the original does not change.

    Attributes:
        size: examples in it.
        x: as `fit` takes it.
        y: the same; None if there is none.

    Raises:
        InvalidInput: the batch is not one.
    """

    def __init__(self, batch: FixedBatch) -> None:
        self._batch = batch
        self.x, self.y = _copied(batch.inputs), _copied(batch.targets)
        first = next((part for part in keras.tree.flatten(self.x) if part.ndim), None)
        if first is None:
            raise InvalidInput(
                f"FixedBatch() was given {what(batch.inputs)} as inputs. It takes an array (examples, …), or a "
                "list or dict of them, as fit takes x."
            )
        self.size = len(first)
        self._shown = first[:EXAMPLES]
        self._answers = None if self.y is None else _targets(keras.tree.flatten(self.y)[0])
        if self._answers is not None and self._answers.shape[:1] != (self.size,):
            raise InvalidInput(
                f"FixedBatch() was given inputs with {count_of(self.size, 'example')}, and targets of shape "
                f"{tuple(self._answers.shape)}. Both need the same first axis."
            )
        self._texts: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The inputs and the targets of the examples shown.

        Raises:
            CannotDecode: a function of the user's raised.
        """
        if self._texts is None:
            inputs = tuple(decoded(self._batch.decode, _text_of(row), "decode") for row in self._shown)
            of_targets: tuple[str, ...] = ()
            if self._answers is not None:
                of_targets = target_texts(self._answers[:EXAMPLES], self._batch.decode_target)
            self._texts = inputs, of_targets
        return self._texts

    def look(self, model: keras.Model, step: int) -> Look:
        """Run the model with its weights held: what it assigns meanwhile is forgotten.

        Raises:
            CannotDecode: the batch does not fit the model, or a function of the user's raised.
        """
        assert self.texts  # first, so that the user's functions fail before the pass
        kept = [(v, v.value) for v in (*model.trainable_variables, *model.non_trainable_variables)]
        with keras.StatelessScope(state_mapping=kept, collect_losses=True):
            try:
                x = keras.tree.map_structure(keras.ops.convert_to_tensor, self.x)
                outputs = model(x, training=False) if getattr(model, "_call_has_training_arg", True) else model(x)
            except Exception as error:
                raise CannotDecode(f"the model raised {typed_message(error)} for it") from None
            loss = self._loss(model, x, outputs)
        parts = keras.tree.flatten(outputs)
        prediction = as_array(parts[0]) if parts else None
        if prediction is None or prediction.shape[:1] != (self.size,):
            shape = "no numbers" if prediction is None else f"an array of shape {tuple(prediction.shape)}"
            raise CannotDecode(f"the model returned {shape} for {count_of(self.size, 'example')}")
        said, right = self._said(model, prediction[:EXAMPLES].astype(np.float32))
        return Look(step, loss, said, right)

    def _said(self, model: keras.Model, shown: Array) -> tuple[tuple[str, ...], tuple[bool | None, ...]]:
        answers = None if self._answers is None else self._answers[:EXAMPLES]
        said, right = prediction_texts(shown, answers, self._batch.decode_target)
        one = answers is not None and shown.size == answers.size
        if not one or answers is None or kind_of_loss(model.loss) != "binary_cross_entropy":
            return said, right
        threshold = 0.0 if getattr(model.loss, "from_logits", False) else 0.5
        agree = (shown.reshape(len(answers), -1) > threshold) == (answers.reshape(len(answers), -1) > 0.5)
        return said, tuple(bool(row.all()) for row in agree)

    def _loss(self, model: keras.Model, x: Any, outputs: Any) -> float | None:
        y = None if self.y is None else keras.tree.map_structure(keras.ops.convert_to_tensor, self.y)
        given = self._batch.loss_fn
        name = "the model's loss" if given is None else "loss_fn"
        try:
            if given is not None:
                loss = given(y, outputs)
            elif y is None or model.loss is None:
                return None
            else:
                with own_loss(model):
                    loss = model._compute_loss(x=x, y=y, y_pred=outputs, sample_weight=None, training=False)
        except Exception as error:
            raise CannotDecode(f"{name} raised {typed_message(error)} for it") from None
        values = as_array(loss)
        return None if values is None else float(values.mean())


class KerasOverTime:
    """The looks of one `fit`.

    Args:
        model: the user's; only read.
        batch: to decode; None for none.
        by_layer: whether to take histograms of the weights. Keras does not show the gradients.
        faults: by part, filled as in `FaultGuard`.
        uncovered: the same.

    Attributes:
        histograms: by step, rising.
        on_look: called after each look, with what is new.
    """

    def __init__(
        self,
        model: keras.Model,
        batch: HeldBatch | None,
        by_layer: bool,
        faults: dict[str, str],
        uncovered: dict[str, str],
    ) -> None:
        self._model: keras.Model | None = model
        self._batch, self._by_layer = batch, by_layer
        self._guard, self._uncovered = FaultGuard(faults, uncovered), uncovered
        self._looks: list[Look] = []
        self.histograms: list[LayerHistograms] = []
        self._latest = -1
        self.on_look: OnLook | None = None

    def fixed_batch(self) -> FixedBatchFacts | None:
        """Return the looks at the fixed batch; None without one."""
        if self._batch is None or not self._looks:
            return None
        return FixedBatchFacts(self._batch.size, *self._batch.texts, tuple(self._looks))

    def before_step(self, step: int) -> None:
        """Look, if one of the steps since the last call is a step to look at.

        Args:
            step: steps made so far; with `steps_per_execution` it rises by more than one.
        """
        due = any(map(is_look_step, range(step, max(self._latest, step - MAX_LOOKS), -1)))
        if due and len(self._looks) < MAX_LOOKS and len(self.histograms) < MAX_LOOKS:
            self._look(step)

    def end(self, step: int) -> None:
        """Look at the end of the run, and let go of the model."""
        if 0 <= self._latest < step:  # a run without a step has nothing to show
            self._look(step)
        self._model = None

    def _look(self, step: int) -> None:
        if self._model is None:
            return
        self._latest = step
        looks, measured = len(self._looks), len(self.histograms)
        with own_run(), own_warnings_ignored(), _without_gradients():
            if self._batch is not None and BATCH not in self._uncovered:
                self._guard.run(BATCH, self._decode, self._batch, step)
            if self._by_layer:
                self._guard.run(HISTOGRAMS, self._measure, step)
        if self.on_look is not None:
            self.on_look(
                self._looks[-1] if len(self._looks) > looks else None,
                self.histograms[-1] if len(self.histograms) > measured else None,
            )

    def _decode(self, batch: HeldBatch, step: int) -> None:
        assert self._model is not None
        try:
            self._looks.append(batch.look(self._model, step))
        except CannotDecode as reason:
            self._uncovered[BATCH] = str(reason)

    def _measure(self, step: int) -> None:
        assert self._model is not None
        owned: dict[str, list[Any]] = {}
        for variable in self._model.trainable_variables:
            owned.setdefault(variable.path.rpartition("/")[0] or self._model.name, []).append(variable)
        found = {layer: _histogram(variables) for layer, variables in list(owned.items())[:LAYERS]}
        weights = {layer: histogram for layer, histogram in found.items() if histogram is not None}
        self.histograms.append(LayerHistograms(step, weights, {}))


def _histogram(variables: list[Any]) -> Histogram | None:
    size = sum(int(np.prod(variable.shape)) for variable in variables)
    if not size:
        return None
    flat = [keras.ops.reshape(v.value, (-1,))[:: stride_for(size)] for v in variables]
    return histogram_of([keras.ops.convert_to_numpy(keras.ops.cast(part, "float32")) for part in flat], size)


def _targets(target: Array) -> Array:
    """Return targets as the texts need them: class numbers (examples, …) in the place of one-hot rows."""
    if target.ndim > 1 and target.shape[-1] > 1 and is_one_hot(target):
        return np.asarray(target.argmax(-1))
    return target[:, 0] if target.ndim == 2 and target.shape[-1] == 1 and target.dtype.kind in "iu" else target


def _text_of(row: Any) -> Any:
    """Return an example as it is; one that is a string, which TensorFlow holds as bytes, as a string."""
    text = row.item() if isinstance(row, np.ndarray) and row.dtype.kind in TEXT and row.size == 1 else row
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def _copied(value: Any) -> Any:
    """Copy the arrays of a structure into the host's memory; what holds no numbers stays as NumPy makes it."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {name: _copied(part) for name, part in value.items()}
    if isinstance(value, list | tuple) and any(hasattr(part, "shape") for part in value):
        return type(value)(map(_copied, value))
    array = as_array(value)
    return np.array(value if array is None else array)


def _without_gradients() -> Any:
    if keras.backend.backend() != "torch":
        return nullcontext()
    import torch

    return torch.no_grad()
