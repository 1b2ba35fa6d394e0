"""Tests whether a model in training mode tells one row of inputs from another, where each batch has one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.keras.post_run import PostRunCheck
from diagnostics.collectors.shared.dependence.subject import Inputs
from diagnostics.facts.layers import BatchNormSingleRow


class SingleRows(PostRunCheck):
    """Asks about two rows in training mode, one by one."""

    rows_at_once: int | None = None  # that `fit` was told to put into a batch; None if it was not

    def on_examined(self, model: keras.Model, pipeline: Any) -> None:
        """See `PostRunCheck.on_examined`."""
        self.rows_at_once = getattr(pipeline, "rows_at_once", None)

    def facts(self) -> Iterable[BatchNormSingleRow]:
        """Return nothing where the answers differ, or batches have more rows."""
        subject = self.subject.asked
        norms = [
            layer.name
            for layer in subject.model._flatten_layers()
            if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable
        ]
        at_once = self.rows_at_once or len(next(iter(subject.inputs.values())))
        one, other = {name: part[:1] for name, part in subject.inputs.items()}, _another(subject.inputs)
        if at_once != 1 or not norms or other is None:
            return
        try:
            with own_run():
                answers = [subject.ask(row, training=True).main for row in (one, other)]
                known = [subject.ask(row).main for row in (one, other)]
        except Exception:  # of the model, which may not take a single row; or time is over
            return
        if np.array_equal(answers[0], answers[1]) and not np.array_equal(known[0], known[1]):
            yield BatchNormSingleRow(tuple(norms))


def _another(inputs: Inputs) -> Inputs | None:
    """Return a row that differs from the first in each input; None where there is none, nor can be made."""
    if all(len(part) > 1 and not np.array_equal(part[0], part[1]) for part in inputs.values()):
        return {name: part[1:2] for name, part in inputs.items()}
    if all(part.dtype.kind == "f" and part[0].any() for part in inputs.values()):
        return {name: -part[:1] for name, part in inputs.items()}
    return None
