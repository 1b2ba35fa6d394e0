"""Describes what `fit` draws its batches from, as far as it matters for speed."""

from __future__ import annotations

from typing import Any

import keras

from diagnostics.collectors.shared.script_line import defined_at
from diagnostics.facts.step_times import BatchSource

from .internals import DatasetV2
from .replayable import transformations


def batch_source(data: Any) -> BatchSource | None:
    """Return the source that the argument `x` of `fit` is; None for arrays, whose rows are at hand."""
    if isinstance(data, keras.utils.PyDataset):
        items = defined_at(getattr(type(data), "__getitem__", None))
        return BatchSource("PyDataset", workers=int(data.workers), items=items)
    if isinstance(data, DatasetV2):
        made_of = transformations(data)
        return BatchSource("tf.data", prefetches="_PrefetchDataset" in made_of, caches="_CacheDataset" in made_of)
    return BatchSource() if hasattr(data, "__next__") else None
