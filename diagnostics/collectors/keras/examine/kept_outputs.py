"""Names the outputs of a model, and keeps rows with what each of its outputs should answer to them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from diagnostics.collectors.keras.batch import as_array, is_one_hot, unpack
from diagnostics.collectors.keras.data import KerasData
from diagnostics.collectors.keras.losses import expects_indices, kind_of_loss
from diagnostics.collectors.shared.learnability import FEWEST
from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import LossKind

if TYPE_CHECKING:
    from diagnostics.collectors.keras.watch.sampled_rows import SampledRows
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import tensorflow as tf

from diagnostics.collectors.isolation.patching import Patches
from diagnostics.collectors.keras.batch import batch_facts
from diagnostics.collectors.keras.losses import as_written, classifies, output_facts
from diagnostics.collectors.keras.model import activation_of, passes_on
from diagnostics.facts.loss_contracts import Reads
from diagnostics.facts.pipeline import LossFacts, OutputPart, SeveralOutputs

ROWS, BYTES, SECONDS = 512, 8 * 2**20, 0.5  # of the data, until the run is over
LATEST = 32  # calls of layers that are kept, with what they returned: the last ones make the outputs


@dataclass(frozen=True)
class Wanted:
    """One output: its loss, and what it should answer.

    Attributes:
        kind: of loss.
        logits: whether the loss takes the output for logits.
        targets: float64 (n, outputs); of classes, a share each.
        weight: of this loss in the sum of all.
    """

    kind: LossKind
    logits: bool
    targets: Array
    weight: float = 1.0


@dataclass(frozen=True)
class KeptOutputs:
    """Rows of the training data: inputs, flattened as `keras.tree` does, and what each output should answer."""

    inputs: tuple[Array, ...]
    structure: Any
    wanted: Mapping[str, Wanted]


def keep_outputs(model: keras.Model, data: KerasData | SampledRows) -> KeptOutputs | None:
    """Copy rows; None for a model with code of the user's, whose outputs may be meant to learn nothing.

    A layer that turns gradients round, as for adapting to another domain, is such a case; so is a loss of a layer.
    """
    layers = list(model._flatten_layers())
    own = all(
        type(layer).__module__.startswith("keras.") and type(layer) is not keras.layers.Lambda for layer in layers
    )
    losses = by_name(model.loss, names := names_of_outputs(model))
    if not own or losses is None or any(getattr(layer, "activity_regularizer", None) for layer in layers):
        return None
    weights_of = _loss_weights(model, names)
    if weights_of is None or any(not weight > 0 for weight in weights_of.values()):
        return None
    rows, targets, started = list[Any](), list[Any](), time.monotonic()
    structure = None
    for batch in data.batches():
        x, y, weights = unpack(batch)
        leaves, answers = keras.tree.flatten(x), by_name(y, names)
        parts = [part for leaf in leaves if (part := as_array(leaf)) is not None]
        if weights is not None or answers is None or not parts or len(parts) < len(leaves):
            return None
        structure = keras.tree.map_structure(lambda _: 0, x)
        rows.append(parts)
        targets.append([as_array(answers[name]) for name in names])
        if len(rows) * len(parts[0]) >= ROWS or time.monotonic() - started > SECONDS:
            break
    if not rows or any(part is None for several in targets for part in several):
        return None
    columns = [*zip(*rows, strict=True), *zip(*targets, strict=True)]
    if any(len({part.shape[1:] for part in parts}) > 1 for parts in columns):
        return None  # texts of other lengths
    inputs = tuple(np.concatenate(parts) for parts in zip(*rows, strict=True))
    if sum(part.nbytes for part in inputs) > BYTES or len(inputs[0]) < FEWEST:
        return None
    wanted = {
        name: _wanted(losses[name], np.concatenate([several[place] for several in targets]), weights_of[name])
        for place, name in enumerate(names)
    }
    known = {name: one for name, one in wanted.items() if one is not None}
    return KeptOutputs(inputs, structure, known) if known else None


def _wanted(loss: Any, targets: Array, weight: float) -> Wanted | None:
    """Return what an output should answer; None where it has no loss whose constant prediction is known."""
    kind, targets = kind_of_loss(loss), targets.reshape(len(targets), -1)
    alone = targets.shape[1] == 1
    if kind == "cross_entropy" and expects_indices(loss):
        if not alone or targets.min() < 0 or targets.max() >= FEWEST:
            return None
        targets = np.eye(int(targets.max()) + 1)[targets[:, 0].astype(int)]
    known = {
        "cross_entropy": is_one_hot(targets),
        "binary_cross_entropy": alone and bool(((targets == 0) | (targets == 1)).all()),
        "mean_squared_error": True,
    }
    if not known.get(kind, False):
        return None
    return Wanted(kind, bool(getattr(loss, "from_logits", False)), targets.astype(np.float64), weight)


def names_of_outputs(model: keras.Model) -> list[str]:
    """Return what the outputs are called, as in the dicts that `compile` and `fit` take."""
    structure = getattr(model, "_outputs_struct", None)
    if isinstance(structure, Mapping):
        return list(structure)
    return list(getattr(model, "output_names", None) or ["output"])


def by_name(value: Any, names: list[str]) -> dict[str, Any] | None:
    """Pair what is given for each output with the outputs' names; None where that is not clear."""
    if isinstance(value, Mapping):
        return {name: value[name] for name in names} if set(names) <= set(value) else None
    if isinstance(value, list | tuple):
        return dict(zip(names, value, strict=True)) if len(value) == len(names) else None
    return {names[0]: value} if len(names) == 1 and value is not None else None


def _loss_weights(model: keras.Model, names: list[str]) -> dict[str, float] | None:
    """Return the weight of each output's loss; None where they are not paired with the outputs."""
    given = getattr(getattr(model, "_compile_loss", None), "_user_loss_weights", None)
    if isinstance(given, Mapping):
        return {name: float(given.get(name, 1.0)) for name in names}
    found = dict.fromkeys(names, 1.0) if given is None else by_name(given, names)
    return None if found is None else {name: float(weight) for name, weight in found.items()}


class LayerCalls:
    """What the last layers of a model returned in one pass, in any style of model."""

    def __init__(self) -> None:
        # Layer, its first argument, what it returned; a layer within another comes first.
        self._calls: deque[tuple[Any, Any, Any]] = deque(maxlen=LATEST)

    def last_activation(self, output: Any) -> str | None:
        """Name the function that made an output; None where no layer did. Layers that keep it are passed over."""
        for _ in self._calls:
            call = next((call for call in self._calls if call[2] is output), None)
            if call is None:
                return None
            layer, given, _ = call
            if not type(layer).__module__.startswith("keras."):
                return None  # what it does with an attribute of that name is its own
            if not passes_on(layer) or given is output:
                return activation_of(layer)
            output = given
        return None

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the calls within, made by this thread or another; nothing else is kept of them."""
        patches = Patches()
        patches.around(keras.layers.Layer, "__call__", self._around)
        try:
            yield
        finally:
            patches.undo()

    def _around(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        calls = self._calls

        def call(layer: Any, *arguments: Any, **options: Any) -> Any:
            returned = plain(layer, *arguments, **options)
            if tf.is_tensor(returned):
                calls.append((layer, arguments[0] if arguments else None, returned))
            return returned

        return call


def several_outputs(model: keras.Model, prediction: Any, y: Any, calls: LayerCalls) -> SeveralOutputs | None:
    """Return the facts of each output by itself; None where losses, targets and outputs are not paired by name.

    Args:
        model: compiled.
        prediction: several tensors.
        y: targets.
        calls: of the pass that made the prediction.
    """
    names = names_of_outputs(model)
    alone = isinstance(model.loss, str | keras.losses.Loss) or callable(model.loss)
    losses = dict.fromkeys(names, model.loss) if alone else by_name(model.loss, names)
    outputs, targets = by_name(prediction, names), by_name(y, names)
    if losses is None or outputs is None or targets is None or len(names) < 2:
        return None
    parts = [_part(name, outputs[name], targets[name], losses[name], calls) for name in names]
    known = tuple(part for part in parts if part is not None)
    return SeveralOutputs(known) if known else None


def _part(name: str, output: Any, target: Any, loss: Any, calls: LayerCalls) -> OutputPart | None:
    wanted = None if target is None else as_array(target)
    own = not isinstance(loss, str) and not getattr(loss, "__module__", "").startswith("keras.")
    if loss is None or own or wanted is None or not tf.is_tensor(output):
        return None  # what a loss of the user's own makes of its arguments is not known
    last = calls.last_activation(output)
    values = np.asarray(tf.cast(output, tf.float32))
    reads: Reads | None = None
    if classifies(loss) and last not in (None, "softmax", "sigmoid"):
        reads = "logits" if getattr(loss, "from_logits", False) else "probabilities"
    return OutputPart(
        name,
        batch_facts({}, wanted, loss),
        output_facts(values, loss, last, wanted),
        LossFacts(float("nan"), kind_of_loss(loss), reads=reads, name=as_written(loss)),
    )
