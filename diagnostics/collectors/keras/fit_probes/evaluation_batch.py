"""Keeps a few rows of the validation data of a `fit`, for the report to show next to the training batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import keras

from diagnostics.collectors.keras.batch import view_of
from diagnostics.collectors.keras.fit_probes import FitProbe, on_tensorflow
from diagnostics.facts.batch_view import BatchView

BATCH = 32  # rows, where `fit` is given no batch size


class EvaluationBatch(FitProbe):
    """Reads the first rows, once the `fit` has ended: of arrays, or of a dataset that shuffles nothing."""

    def facts(self) -> Iterable[BatchView]:
        """Return nothing where there is no such data."""
        batch = self._batch() if self.subject.shows_batch and on_tensorflow() else None
        view = None if batch is None else view_of("evaluation", batch)
        return () if view is None else (view,)

    def _batch(self) -> Any:
        given = self.subject.given
        rows, held_out = int(given.get("batch_size") or BATCH), given.get("validation_data")
        if held_out is None and (share := float(given.get("validation_split") or 0)):
            x, y = given.get("x"), given.get("y")
            count = next((len(leaf) for leaf in keras.tree.flatten(x) if hasattr(leaf, "__len__")), 0)
            kept = int(count * (1 - share))
            return _rows_of((x, y), slice(kept, kept + rows))
        if isinstance(held_out, tuple | list):
            return _rows_of(tuple(held_out[:2]), slice(rows))
        return None if held_out is None else _first_batch(held_out)


def _rows_of(data: Any, rows: slice) -> Any:
    """Cut arrays to some rows; None for anything else."""
    leaves = [leaf for leaf in keras.tree.flatten(data) if leaf is not None]
    if not leaves or not all(hasattr(leaf, "shape") or isinstance(leaf, Mapping) for leaf in leaves):
        return None
    return keras.tree.map_structure(lambda leaf: None if leaf is None else leaf[rows], data)


def _first_batch(dataset: Any) -> Any:
    """Read a batch of a `tf.data.Dataset` of which that leaves no trace; None for any other."""
    import tensorflow as tf

    from diagnostics.collectors.keras.data import KerasData
    from diagnostics.collectors.keras.replayable import can_be_read, shuffles
    from diagnostics.collectors.keras.state import global_states_kept

    if not isinstance(dataset, tf.data.Dataset) or shuffles(dataset) is not False or not can_be_read(dataset):
        return None
    with global_states_kept():
        return next(KerasData(dataset).batches(), None)
