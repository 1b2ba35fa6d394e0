"""A Keras model that can be asked again about any rows of one batch, which is kept, with values of its own."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.harmless import NOTICED, of_call
from diagnostics.collectors.keras.internals import op_callbacks
from diagnostics.collectors.keras.losses import expects_indices
from diagnostics.collectors.keras.model import has_call, has_own_train_step, has_parts_weights, has_weights
from diagnostics.collectors.keras.values import current
from diagnostics.collectors.keras.weights import LIMIT
from diagnostics.collectors.shared.arrays import LABEL_NAMES
from diagnostics.collectors.shared.dependence.linearity import MAX_LAYERS
from diagnostics.collectors.shared.dependence.subject import (
    NO_BATCH_NORM,
    NOISE,
    Answer,
    Inputs,
    Layer,
    Operation,
    OutOfTime,
    StepReader,
    Subject,
    Unclear,
    rows_of_numbers,
)

ATTENTION = ("MultiHeadAttention", "GroupQueryAttention", "Attention", "AdditiveAttention")
MAX_ROWS = 64  # kept of a batch; the measurements take 26 at most
MAX_BYTES = 16 * 2**20


class KerasSubject(Subject):
    """Asks a model whose variables it replaces by values of the same size: nothing of the model changes.

    Args:
        model: compiled, built; only read.
        kept: rows of a batch.
        deadline: of `time.monotonic`, after which `ask` raises.

    Attributes:
        variables: of the model, the trainable ones first.
        weighted: whether there are sample weights.
        adds_losses: whether a call was seen to add a loss, of which the inputs may be a part.
    """

    axes = (0,)
    batch_first = True
    shows_softmax = False
    seeds = (0,)  # its generators of random numbers begin from where they are each time

    def __init__(self, model: keras.Model, kept: KeptBatch, deadline: float = float("inf")) -> None:
        self.model, self.target, self._deadline = model, kept.target, deadline
        self._structure, self.weighted = kept.structure, kept.weighted
        self._takes_training = getattr(model, "_call_has_training_arg", True)
        self.variables = [*model.trainable_variables, *model.non_trainable_variables]
        self._values: list[Any] | None = None  # None: those of the model
        names = _names(model, kept)
        self.inputs = dict(zip(names or map(str, range(len(kept.inputs))), kept.inputs, strict=True))
        self.tested = frozenset(
            name for name in names or () if name not in LABEL_NAMES and not _is(self.inputs[name], kept.target)
        )
        self.ignore_index = getattr(model.loss, "ignore_class", None)
        self.predicts_tokens = not kept.weighted and predicts_tokens(model)
        self.adds_losses = False

    def ask(self, inputs: Inputs, *, training: bool = False, seed: int = 0) -> Answer:
        """See `Subject.ask`.

        Raises:
            OutOfTime: the deadline is over.
            Unclear: no tensor of floating point was returned.
        """
        given = self.outputs(inputs, training=training)
        arrays = [np.asarray(tf.cast(part, tf.float32)) for part in given]
        if not arrays or not arrays[0].ndim:
            raise Unclear("the model does not return a floating-point tensor with at least one axis")
        return Answer(arrays[0], arrays[1:])

    def outputs(self, inputs: Inputs, *, training: bool = False) -> list[tf.Tensor]:
        """Run the model as `ask` does, and return its tensors of floating point, which a tape may follow.

        Raises:
            OutOfTime: the deadline is over.
        """
        outputs, scope = self._called(inputs, training)
        self.adds_losses = self.adds_losses or bool(scope.losses)
        return [part for part in keras.tree.flatten(outputs) if tf.is_tensor(part) and part.dtype.is_floating]

    def _called(self, inputs: Inputs, training: bool) -> tuple[Any, keras.StatelessScope]:
        """Return what the model returns, and the values of its variables after the call."""
        if time.monotonic() > self._deadline:
            raise OutOfTime
        x = keras.tree.pack_sequence_as(self._structure, [tf.convert_to_tensor(v) for v in inputs.values()])
        pairs = list(zip(self.variables, self._values or map(current, self.variables), strict=True))
        with keras.StatelessScope(state_mapping=pairs, collect_losses=True) as scope:
            outputs = self.model(x, training=training) if self._takes_training else self.model(x)
        return outputs, scope

    def operations_seen(self, size: int) -> AbstractContextManager[list[Operation]]:
        """See `Subject.operations_seen`. TensorFlow shows reshapes; its softmax always runs over the last axis."""
        return reshapes_seen(size)

    def summaries_seen(self, rows: int, length: int) -> AbstractContextManager[list[str]]:
        """See `Subject.summaries_seen`."""
        return summaries_seen(rows, length)

    def reads_steps(self, inputs: Inputs, length: int) -> StepReader | None:
        """See `Subject.reads_steps`."""
        layers = self.model._flatten_layers()
        kinds = [type(layer) for layer in layers if not isinstance(layer, keras.Model)]
        if any(issubclass(kind, keras.layers.Bidirectional) for kind in kinds):
            return None
        if any(issubclass(kind, keras.layers.RNN) for kind in kinds):
            return "recurrent"
        return "attention" if any(issubclass(kind, _attention()) for kind in kinds) else None

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Take the values of the model again on leaving."""
        try:
            yield
        finally:
            self._values = None

    def add_noise(self) -> None:
        """See `Subject.add_noise`."""
        generator, values = np.random.default_rng(0), list(map(current, self.variables))
        for place, value in enumerate(values[: len(self.model.trainable_variables)]):
            if value.dtype.is_floating:
                size = float(np.asarray(tf.cast(value, tf.float32)).std()) or 1.0
                added = generator.normal(size=value.shape) * NOISE * size
                values[place] = value + tf.cast(added, value.dtype)
        self._values = values

    def layers(self, inputs: Inputs) -> list[Layer]:
        """See `Subject.layers`; in the order in which the model holds them."""
        places = {id(variable): number for number, variable in enumerate(self.variables)}
        found = []
        for layer in self.model._flatten_layers():
            kernel: Any = getattr(layer, "_kernel", None)
            number = places.get(id(kernel))
            if number is not None and len(kernel.shape) >= 2:
                width = getattr(layer, "units", None) or getattr(layer, "filters", None) or kernel.shape[-1]
                found.append(Layer(f"{layer.name} ({type(layer).__name__})", int(width), number))
        if len(found) > MAX_LAYERS:
            raise Unclear("the model has too many layers")
        return found

    @contextmanager
    def scaled(self, layer: Layer, factor: float) -> Iterator[None]:
        """See `Subject.scaled`; to be called within `restored`."""
        assert self._values is not None
        kept = self._values[layer.key]
        self._values[layer.key] = kept * tf.cast(factor, kept.dtype)
        try:
            yield
        finally:
            self._values[layer.key] = kept

    @contextmanager
    def own_statistics(self) -> Iterator[float]:
        """See `Subject.own_statistics`. Dropout is on where they are taken, as in training."""
        norms = [
            layer
            for layer in self.model._flatten_layers()
            if isinstance(layer, keras.layers.BatchNormalization)
            and layer.built
            and layer.trainable
            and not getattr(layer, "renorm", False)  # which moves its statistics in another way
        ]
        if not norms:
            raise Unclear(NO_BATCH_NORM)
        memory = max(1 / (1 - norm.momentum) if norm.momentum < 1 else math.inf for norm in norms)
        _, scope = self._called(self.inputs, training=True)
        values = {id(variable): current(variable) for variable in self.variables}
        for norm in norms:
            if norm.momentum < 1:
                for variable in (norm.moving_mean, norm.moving_variance):
                    before, after = values[id(variable)], scope.get_current_value(variable)
                    values[id(variable)] = (after - norm.momentum * before) / (1 - norm.momentum)
            values[id(norm.moving_variance)] = tf.maximum(values[id(norm.moving_variance)], 0)  # rounding
        try:
            self._values = list(values.values())
            yield memory
        finally:
            self._values = None


def _is(given: np.ndarray, target: np.ndarray | None) -> bool:
    return target is not None and given.size == target.size and bool((given.ravel() == target.ravel()).all())


def _names(model: keras.Model, kept: KeptBatch) -> list[str] | None:
    """Return the names of the inputs where the model has declared each; None if not."""
    declared = getattr(model, "inputs", None)
    if not isinstance(declared, list) or len(declared) != len(kept.inputs):
        return None
    if isinstance(kept.structure, Mapping):
        kind: Any = type(kept.structure)  # an ordered one is flattened in its order, others by their names
        names: list[str] = keras.tree.flatten(kind((name, name) for name in kept.structure))
        return names if set(names) == {tensor.name for tensor in declared} else None
    if not _is_flat(kept.structure):
        return None
    named = (tensor.name for tensor in declared)  # by Keras, where the user gave no name
    return [str(n) if name.startswith("keras_tensor") else name for n, name in enumerate(named)]


def _is_flat(structure: Any) -> bool:
    parts = structure if isinstance(structure, list | tuple) else [structure]
    return not any(map(keras.tree.is_nested, parts))


@contextlib.contextmanager
def reshapes_seen(size: int) -> Iterator[list[Operation]]:
    """List the reshapes within that run at once, and are no part of a graph; `size`: number of examples."""
    seen: list[Operation] = []

    def ran(op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> None:
        name = op_type.decode() if isinstance(op_type, bytes) else op_type
        if name == "Reshape" and graph is None:
            shape, result = tuple(inputs[0].shape), tuple(outputs[0].shape)
            if shape != result:
                seen.append(Operation("reshape", "reshape", shape, -1, result, rows_of_numbers(shape, size)))

    op_callbacks.add_op_callback(ran)  # of this thread
    try:
        yield seen
    finally:
        op_callbacks.remove_op_callback(ran)


@contextlib.contextmanager
def summaries_seen(rows: int, length: int) -> Iterator[list[str]]:
    """List the layers within that return one vector for each text, or begin from a given state."""
    found: list[str] = []
    plain, within = keras.layers.Layer.__call__, [0]

    def observed(layer: Any, *arguments: Any, **options: Any) -> Any:
        whole = isinstance(layer, keras.layers.RNN | keras.layers.TimeDistributed)
        within[0] += whole
        try:
            result = plain(layer, *arguments, **options)
        finally:
            within[0] -= whole
        leaf = whole or not list(layer._flatten_layers(include_self=False, recursive=False))
        shape = tuple(getattr(keras.tree.flatten(result)[0], "shape", ()))
        sums_up = rows in shape[:2] and not {length, rows * length}.intersection(shape)
        if options.get("initial_state") is not None or (leaf and sums_up and not within[0]):
            found.append(type(layer).__name__)
        return result

    keras.layers.Layer.__call__ = observed
    try:
        yield found
    finally:
        keras.layers.Layer.__call__ = plain


def _attention() -> tuple[type, ...]:
    """Return the layers of attention; the module may be imported while Keras is, so no constant holds them."""
    return tuple(getattr(keras.layers, name) for name in ATTENTION if hasattr(keras.layers, name))


@dataclass(frozen=True)
class KeptBatch:
    """The first rows of one batch, copied.

    Attributes:
        inputs: the parts of `x`, flattened as `keras.tree` does.
        structure: `x` itself, with None in the place of each part.
        target: None if there is none, or several.
        weighted: whether there are sample weights.
    """

    inputs: tuple[np.ndarray, ...]
    structure: Any
    target: np.ndarray | None
    weighted: bool


def keep_batch(x: Any, y: Any, sample_weight: Any) -> KeptBatch | None:
    """Copy rows of a batch; None where they are no arrays of numbers, or too large."""
    parts = [_rows(part) for part in keras.tree.flatten(x)]
    target = None if y is None or keras.tree.is_nested(y) else _rows(y)
    inputs = [part for part in parts if part is not None]
    held = [*inputs, *([] if target is None else [target])]
    if len(inputs) < len(parts) or not inputs or sum(part.nbytes for part in held) > MAX_BYTES:
        return None
    if len({len(part) for part in held}) > 1:
        return None
    structure = keras.tree.map_structure(lambda _: 0, x)
    return KeptBatch(tuple(part.copy() for part in inputs), structure, target, sample_weight is not None)


def _rows(value: Any) -> np.ndarray | None:
    try:
        array = np.asarray(value[:MAX_ROWS])
    except Exception:  # ragged and sparse tensors
        return None
    # bfloat16 is a void to NumPy, and text an object.
    return array if array.ndim and array.dtype.kind in "biuf" else None


def predicts_tokens(model: keras.Model) -> bool:
    """Whether the loss that the model is compiled with looks up one label for each of its answers."""
    own = has_own_train_step(model) or type(model).compute_loss is not keras.Model.compute_loss
    return not own and expects_indices(model.loss)


def size_of(model: keras.Model) -> int:
    """Return the bytes of a model's variables."""
    return sum(int(np.prod(v.shape)) * tf.as_dtype(v.dtype).size for v in model.variables)


def objection(model: keras.Model) -> str | None:
    """Say why a model is not run after the script's end; None if it may be. Nothing is called."""
    if keras.distribution.distribution() is not None:
        return "its weights are spread over several devices"
    if not has_call(model):
        return "the model has no call: its train_step calls its parts"
    if not has_weights(model):
        return "the model was not called" if has_parts_weights(model) else "the model has no weights"
    if size_of(model) > LIMIT:
        return f"its weights take more than {LIMIT // 2**20} MiB"
    why = of_call(model, copied=True).objection
    return None if why is None else NOTICED.format(why)
