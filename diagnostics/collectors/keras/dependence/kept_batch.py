"""Keeps a batch of `fit` or `train_on_batch`, and decides whether its model may be asked again about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.harmless import NOTICED, of_call
from diagnostics.collectors.keras.losses import expects_indices
from diagnostics.collectors.keras.model import has_call, has_own_train_step, has_parts_weights, has_weights
from diagnostics.collectors.keras.weights import LIMIT

MAX_ROWS = 64  # kept of a batch; the measurements take 26 at most
MAX_BYTES = 16 * 2**20


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
