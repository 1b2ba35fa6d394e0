"""Keeps rows of the training data of a model, and what each of its outputs should answer to them."""

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

ROWS, BYTES, SECONDS = 512, 8 * 2**20, 0.5  # of the data, until the run is over


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
