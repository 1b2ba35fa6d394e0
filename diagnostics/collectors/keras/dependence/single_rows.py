"""Tests whether a model in training mode tells one row of inputs from another, where each batch has one."""

from __future__ import annotations

import keras
import numpy as np

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.facts.layers import BatchNormSingleRow

from .subject import Inputs, KerasSubject, OutOfTime, Unclear


def blind_to_rows(subject: KerasSubject, rows_at_once: int | None) -> BatchNormSingleRow | None:
    """Ask about two rows in training mode, one by one; None where the answers differ, or batches have more rows.

    Args:
        subject: the model, with rows of its first batch.
        rows_at_once: that `fit` was told to put into a batch; None if it was not.
    """
    if rows_at_once is None:
        rows_at_once = len(next(iter(subject.inputs.values())))
    norms = [
        layer.name
        for layer in subject.model._flatten_layers()
        if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable
    ]
    if rows_at_once != 1 or not norms:
        return None
    one, other = ({name: part[:1] for name, part in subject.inputs.items()}, _another(subject.inputs))
    if other is None:
        return None
    try:
        with own_run():
            answers = [subject.ask(row, training=True).main for row in (one, other)]
            known = [subject.ask(row).main for row in (one, other)]
    except (OutOfTime, Unclear):
        return None
    except Exception:  # of the model, which may not take a single row
        return None
    blind = np.array_equal(answers[0], answers[1]) and not np.array_equal(known[0], known[1])
    return BatchNormSingleRow(tuple(norms)) if blind else None


def _another(inputs: Inputs) -> Inputs | None:
    """Return a row that differs from the first in each input; None where there is none, nor can be made."""
    if all(len(part) > 1 and not np.array_equal(part[0], part[1]) for part in inputs.values()):
        return {name: part[1:2] for name, part in inputs.items()}
    if all(part.dtype.kind == "f" and part[0].any() for part in inputs.values()):
        return {name: -part[:1] for name, part in inputs.items()}
    return None
