"""Splits a batch of Keras' `fit`, on any backend, and turns it into facts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.shared.arrays import LABEL_NAMES, is_tensor
from diagnostics.collectors.shared.batch_view import ROWS, batch_view
from diagnostics.collectors.shared.flipped_targets import ImageTargets
from diagnostics.collectors.shared.pipeline import StageFailed
from diagnostics.collectors.shared.repeated_rows import RowMemory
from diagnostics.collectors.shared.split_overlap import input_columns, row_digest
from diagnostics.facts.array import Array
from diagnostics.facts.batch_view import BatchView
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import BatchFacts

BATCHES_READ = 64  # of eight rows each, as many rows are read as of larger batches
ROWS_READ = 512
SECONDS_READING = 3.0
FIRST_BATCHES = 5
TEXT = "OSU"  # kinds of NumPy's dtypes
SAMPLED = 1024  # numbers of each part of a batch that its fingerprint is made of, spread evenly

EMPTY = "The training data is empty: it yields no batch. There is nothing to train on."


def unpack(batch: Any) -> tuple[Any, Any, Any]:
    """Part a batch into inputs, target and sample weights, as `fit` does; what is not there is None.

    Raises:
        StageFailed: the batch has more parts than that.
    """
    if isinstance(batch, list):
        batch = tuple(batch)
    try:
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
    except ValueError:
        raise StageFailed(
            f"A batch of the training data is a tuple of {len(batch)}, and fit takes it for x, (x, y) or "
            "(x, y, sample_weight). Several inputs go together into one: ((x1, x2), y) or ({'name': x1, ...}, y)."
        ) from None
    return x, y, weights


def named(inputs: Any) -> dict[str, Any]:
    """Name the inputs of a batch: dicts keep their keys, everything else counts from "0"."""
    if isinstance(inputs, Mapping):
        return {str(name): value for name, value in inputs.items()}
    return {str(index): value for index, value in enumerate(keras.tree.flatten(inputs))}


def inputs_of(batch: Any) -> dict[str, Array]:
    """Return the arrays among the inputs of a batch of `fit`, by name."""
    x, _, _ = unpack(batch)
    return {name: array for name, value in named(x).items() if (array := as_array(value)) is not None}


def as_array(value: Any) -> Array | None:
    """Turn a tensor or array into one of NumPy, not copied where that can be; None if it holds no numbers."""
    try:
        value = value.detach().cpu() if is_tensor(value) else value
        array = np.asarray(value)
    except Exception:  # ragged and sparse tensors, and half precision of PyTorch
        array = None
    if array is not None and array.dtype.kind in TEXT:
        return None  # TensorFlow writes two lines to stderr when it is asked to make numbers of strings
    if array is None or array.dtype.kind not in "biuf":  # bfloat16 counts as void in NumPy
        try:
            array = np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(value, "float32")))
        except Exception:
            return None
    return array.astype(np.float32) if array.dtype == np.float16 else array


def class_labels(x: Any, y: Any) -> Array | None:
    """Return integers (batch,): one class label a row, from the target, or from among the inputs."""
    if y is None and isinstance(x, Mapping):
        y = next((x[name] for name in LABEL_NAMES if name in x), None)
    if isinstance(y, Mapping) and len(y) == 1:
        y = next(iter(y.values()))
    array = None if y is None else as_array(y)
    if array is None or not np.issubdtype(array.dtype, np.integer):
        return None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    return array if array.ndim == 1 else None


def row_classes(x: Any, y: Any) -> Array | None:
    """Return integers (batch,): the class of each row, also from one-hot targets and from 0.0 and 1.0."""
    labels = class_labels(x, y)
    if labels is not None or y is None or isinstance(y, Mapping | list | tuple):
        return labels
    array = as_array(y)
    if array is None or not array.size:
        return None
    if array.ndim == 2 and array.shape[1] > 1:
        return array.argmax(-1) if is_one_hot(array) else None
    if array.ndim > 2 or not bool(((array == 0) | (array == 1)).all()):
        return None
    return array.reshape(-1).astype(np.int64)


def is_one_hot(target: Array) -> bool:
    """Whether each row (..., classes) holds a single 1, and 0 else."""
    return bool(np.all((target == 0) | (target == 1)) and np.all(target.sum(-1) == 1))


def batch_facts(x: Any, y: Any, loss: Any) -> BatchFacts:
    """Return the facts of one batch.

    Args:
        x: inputs, a tensor or a structure of tensors.
        y: target; None if there is none.
        loss: what the model was compiled with.
    """
    arrays = {name: array for name, value in named(x).items() if (array := as_array(value)) is not None}
    labels = class_labels({}, y)
    if labels is None and y is not None and not isinstance(y, dict | list | tuple):
        labels = as_array(y)
    return BatchFacts(
        size=int(next((len(array) for array in arrays.values() if array.ndim), 0)),
        inputs=arrays,
        labels=labels,
        labels_name=None if y is None else "target",
        ignore_index=getattr(loss, "ignore_class", None),
    )


def view_of(title: str, batch: Any) -> BatchView | None:
    """Return a few rows of a batch of `fit` to show; None for parts that only the model's own step understands."""
    try:
        x, y, _ = unpack(batch)
    except StageFailed:
        return None
    size = next((leaf.shape[0] for leaf in keras.tree.flatten(x) if getattr(leaf, "shape", ())), None)
    inputs, targets = ({} if part is None else named(part) for part in (x, y))
    inputs, targets = (
        {name: leaf[:ROWS] for name, leaf in part.items() if getattr(leaf, "shape", ())}
        for part in (inputs, targets)
    )
    targets = {"target": targets["0"]} if list(targets) == ["0"] else targets
    return batch_view(title, inputs, targets, size=None if size is None else int(size)) if inputs else None


def fingerprint(parts: list[Array]) -> int:
    """Return a number of 64 bits, equal for equal batches; 0 where that cannot be told."""
    digest = hashlib.blake2b(digest_size=8)
    for values in parts:
        if values.dtype.hasobject:  # strings
            return 0
        flat = values.reshape(-1)
        digest.update(b"%d %d" % (values.ndim, values.size))
        digest.update(np.ascontiguousarray(flat[:: max(1, -(-flat.size // SAMPLED))]).tobytes())
    return int.from_bytes(digest.digest(), "little")


def take_rows(memory: RowMemory, batch: Any) -> None:
    """Let the rows of a batch of `fit` be remembered with their targets, if it has them, and no sample weights."""
    if not memory.wants():
        return
    try:
        x, y, weights = unpack(batch)
    except StageFailed:  # parts that only the model's own step understands
        return
    if weights is not None:  # a target of weight 0 may be anything
        return
    leaves = [keras.tree.flatten(part) for part in (x, y)]
    inputs, targets = ([a for leaf in part if (a := as_array(leaf)) is not None and a.ndim] for part in leaves)
    if [len(inputs), len(targets)] != [len(part) for part in leaves] or not targets:
        return
    rows = len(targets[0])
    if all(len(part) == rows for part in targets):
        memory.take(inputs, np.concatenate([part.reshape(rows, -1) for part in targets], axis=1))


def take_images(kept: ImageTargets, batch: Any) -> None:
    """Let the images of a batch of `fit` be kept with their masks, boxes or points, if it has them."""
    if not kept.wants():
        return
    try:
        x, y, _ = unpack(batch)
    except StageFailed:  # parts that only the model's own step understands
        return
    leaves = (map(as_array, keras.tree.flatten(part)) for part in (x, y))
    kept.take(*([array for array in part if array is not None] for part in leaves))


class SeenRows:
    """Collects what `DatasetFacts` needs from one batch after the other, and keeps no input.

    Args:
        seconds: to spend on it.
        classifies: whether targets that are one-hot, or 0.0 and 1.0, are classes; integers always are.

    Attributes:
        complete: whether enough was seen.
    """

    def __init__(self, seconds: float = SECONDS_READING, classifies: bool = False) -> None:
        self._classes_of = row_classes if classifies else class_labels
        self._labels: list[Array | None] = []
        self._digests: set[bytes] = set()
        self._columns: tuple[str, ...] = ()
        self._rows = 0
        self._seconds = seconds
        self.complete = False

    def add(self, batch: Any) -> None:
        """Take a batch as `fit` gets it."""
        started = time.monotonic()
        x, y, _ = unpack(batch)
        arrays = {name: array for name, value in named(x).items() if (array := as_array(value)) is not None}
        self._columns = tuple(named(x))
        self._labels.append(self._classes_of(x, y))
        parts = [array for array in arrays.values() if array.ndim]
        size = min(map(len, parts), default=0)
        for row in range(size):
            values = (*(array[row] for array in parts), None)
            self._digests.add(row_digest(values, input_columns(values)))
        self._rows += size
        self._seconds -= time.monotonic() - started
        self.complete = self._rows >= ROWS_READ or len(self._labels) >= BATCHES_READ or self._seconds < 0

    def facts(self, size: int | None, shuffled: bool | None, spread_out: bool = False) -> DatasetFacts:
        """Return the facts of all rows seen.

        Args:
            size: rows of the whole dataset; None if not known.
            shuffled: whether training sees them in random order; None if not known.
            spread_out: whether the rows seen are from all over the dataset.

        Raises:
            StageFailed: there was no batch.
        """
        if not self._labels:
            raise StageFailed(EMPTY)
        known = [batch for batch in self._labels if batch is not None]
        labelled = len(known) == len(self._labels)
        return DatasetFacts(
            size=size,
            rows_read=self._rows,
            spread_out=spread_out,
            columns=self._columns if self._columns != ("0",) else (),
            labels=np.concatenate(known) if labelled else None,
            shuffled=shuffled,
            first_batches=() if shuffled or not labelled else _full(known[:FIRST_BATCHES]),
            distinct_rows=len(self._digests) if self._rows else None,
        )


def _full(batches: list[Array]) -> tuple[Array, ...]:
    return tuple(batch for batch in batches if len(batch) == len(batches[0]))
