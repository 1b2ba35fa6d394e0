"""Describes what `fit` draws its batches from, as far as it matters for speed, and counts the steps to come."""

from __future__ import annotations

import inspect
from typing import Any

import keras
import tensorflow as tf

from diagnostics.collectors.shared.script_line import defined_at
from diagnostics.facts.step_times import BatchSource

from .internals import DatasetV2
from .replayable import transformations

BATCH_SIZE = 32  # `fit`'s own


def batch_source(data: Any) -> BatchSource | None:
    """Return the source that the argument `x` of `fit` is; None for arrays, whose rows are at hand."""
    if isinstance(data, keras.utils.PyDataset):
        items = defined_at(getattr(type(data), "__getitem__", None))
        return BatchSource("PyDataset", workers=int(data.workers), items=items)
    if isinstance(data, DatasetV2):
        made_of = transformations(data)
        return BatchSource("tf.data", prefetches="_PrefetchDataset" in made_of, caches="_CacheDataset" in made_of)
    return BatchSource() if hasattr(data, "__next__") else None


def planned_steps(*arguments: Any, **options: Any) -> int | None:
    """Return the number of batches that `fit` draws at most; None if that is not known before.

    Args:
        arguments: of `keras.Model.fit`, the model first.
        options: likewise.
    """
    try:
        return _planned(inspect.signature(keras.Model.fit).bind(*arguments, **options).arguments)
    except (TypeError, ValueError):  # `fit` itself will refuse them
        return None


def _planned(given: dict[str, Any]) -> int | None:
    epochs = int(given.get("epochs", 1)) - int(given.get("initial_epoch", 0))
    a_round = given.get("steps_per_epoch")
    if a_round is None:
        a_round = _batches_in(given.get("x"), given.get("batch_size"), given.get("validation_split") or 0.0)
    return None if a_round is None else max(epochs, 0) * int(a_round)


def _batches_in(data: Any, batch_size: Any, validation_split: float) -> int | None:
    if isinstance(data, tf.data.Dataset):
        known = int(data.cardinality())
        return known if known >= 0 else None  # infinite, or unknown
    if isinstance(data, keras.utils.PyDataset):
        return None if data.num_batches is None else int(data.num_batches)
    leaf = next((leaf for leaf in keras.tree.flatten(data) if hasattr(leaf, "shape") and len(leaf.shape)), None)
    if leaf is None:
        return None
    rows = int(leaf.shape[0] * (1 - validation_split))
    return -(-rows // int(batch_size or BATCH_SIZE))
