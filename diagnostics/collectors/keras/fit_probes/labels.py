"""Reads labels: those given to a `fit`, and those that it is evaluated on, beside its logged accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from diagnostics.collectors.keras.internals import LEGACY_PREPROCESSING
from diagnostics.collectors.keras.losses import as_written
from diagnostics.facts.array import Array
from diagnostics.facts.course import AccuracyHistory
from diagnostics.facts.data import RowOrder

from . import FitProbe, on_tensorflow

NAMES = ("accuracy", "acc", "categorical_accuracy", "sparse_categorical_accuracy")
BATCHES = 8  # of a dataset, whose labels are read
MOST_CLASSES = 1_000

BATCH = 32  # rows, where `fit` is given no batch size


class LoggedAccuracy(FitProbe):
    """Reads the logs of a `fit` that has ended; only data that can be read without side effects is read."""

    def facts(self) -> Iterable[AccuracyHistory]:
        """Return nothing where no accuracy is logged, or its labels are not known."""
        for name in NAMES if on_tensorflow() else ():
            logged = [(steps, logs) for steps, logs in self.subject.epochs if f"val_{name}" in logs]
            known = [(steps, logs[name], logs[f"val_{name}"]) for steps, logs in logged]
            labels = _evaluation_labels(self.subject.model, self.subject.given) if known else None
            if labels is not None:
                steps, training, evaluation = (np.array(column) for column in zip(*known, strict=True))
                yield AccuracyHistory(
                    name, steps, training.astype(np.float64), evaluation.astype(np.float64), np.bincount(labels)
                )
                return


def _evaluation_labels(model: Any, given: Mapping[str, Any]) -> Array | None:
    """Return the labels of the rows of an evaluation, or of some of them."""
    from diagnostics.collectors.keras.data import KerasData
    from diagnostics.collectors.keras.replayable import can_be_read

    validation, split, y = (given.get(name) for name in ("validation_data", "validation_split", "y"))
    if validation is None:
        kept = None if not split or not isinstance(y, np.ndarray) else int(len(y) * (1 - float(split)))
        labels = None if kept is None or y is None else class_labels(model, y[kept:])
    elif not can_be_read(validation):
        labels = _known_labels(model, validation)
    elif isinstance(validation, tuple | list):
        labels = class_labels(model, validation[1]) if len(validation) > 1 else None
    else:
        parts = [_labels_of(model, batch) for batch in islice(KerasData(validation).batches(), BATCHES)]
        known = [part for part in parts if part is not None]
        labels = np.concatenate(known) if known and len(known) == len(parts) else None
    return None if labels is None or labels.min() < 0 or labels.max() >= MOST_CLASSES else labels


def _known_labels(model: Any, validation: Any) -> Array | None:
    """Return the labels that an iterator of Keras' ImageDataGenerator knows; it is not advanced."""
    if not type(validation).__module__.startswith(LEGACY_PREPROCESSING):
        return None
    known = getattr(validation, "classes", getattr(validation, "y", None))
    return None if known is None or not len(known) else class_labels(model, np.asarray(known))


def _labels_of(model: Any, batch: Any) -> Array | None:
    return (
        class_labels(model, np.asarray(batch[1])) if isinstance(batch, tuple | list) and len(batch) > 1 else None
    )


class OrderOfLabels(FitProbe):
    """Describes the order of the rows, once the `fit` has ended."""

    def facts(self) -> Iterable[RowOrder]:
        """Return nothing where y holds no class labels in an array."""
        model, given = self.subject.model, self.subject.given
        labels = class_labels(model, given.get("y")) if on_tensorflow() else None
        if labels is not None:
            kept = int(len(labels) * (1 - float(given.get("validation_split") or 0)))
            shuffled = bool(given.get("shuffle", True))
            yield RowOrder(labels, len(labels) - kept, shuffled, int(given.get("batch_size") or BATCH))


def class_labels(model: Any, y: Any) -> Array | None:
    """Return the class of each row, int64 (rows,); None where y holds no class labels in an array.

    Args:
        model: compiled; its loss tells whether integers are classes.
        y: integers (rows,) or (rows, 1), or one-hot (rows, classes).
    """
    if not isinstance(y, np.ndarray) or "crossentropy" not in str(as_written(model.loss)).lower().replace("_", ""):
        return None
    if y.ndim == 2 and y.shape[1] > 1 and bool(((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all()):
        y = y.argmax(axis=1)
    labels = y.reshape(-1)
    if len(labels) != len(y) or not len(y) or (labels.dtype.kind == "f" and not (labels == labels.round()).all()):
        return None
    return labels.astype(np.int64) if labels.dtype.kind in "iuf" else None
