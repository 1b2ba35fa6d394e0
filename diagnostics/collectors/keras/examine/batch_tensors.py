"""A batch as a Keras model takes it: inputs, target and sample weights, as tensors of TensorFlow."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from diagnostics.collectors.keras.batch import unpack
from diagnostics.collectors.shared.pipeline import users_code


def tensors_of(batch: Any, model: keras.Model, preprocesses: bool) -> tuple[Any, Any, Any]:
    """Part a batch into inputs, target and sample weights; what is not there is None.

    Args:
        batch: as the data yields it.
        model: which may be one of KerasHub, with a preprocessor.
        preprocesses: whether the batch is yet to pass that preprocessor.
    """
    parts = unpack(batch)
    preprocessor = getattr(model, "preprocessor", None) if preprocesses else None
    if preprocessor is not None and hasattr(model, "preprocess_samples"):
        with users_code():
            parts = model.preprocess_samples(*parts)
    with users_code():  # what TensorFlow cannot take, `fit` cannot take either
        x, y, weights = (
            None if part is None else keras.tree.map_structure(tf.convert_to_tensor, part) for part in parts
        )
    return x, y, weights
