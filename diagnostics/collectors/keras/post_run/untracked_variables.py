"""Finds trainable variables of TensorFlow that layers keep as attributes, where Keras does not look for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.keras.dependence.vanishing_layers import vanishing_layers
from diagnostics.collectors.keras.model import has_own_train_step
from diagnostics.collectors.keras.optimizer import optimizer_facts
from diagnostics.collectors.keras.post_run import PostRunCheck
from diagnostics.facts.array import Array
from diagnostics.facts.loss_graph import LeafFacts

ROWS = 4  # of the kept batch
NUMBERS = 64  # of each variable, by which a change is recognised


class UntrackedVariables(PostRunCheck):
    """Looks for variables that the answers depend on, and that the training has left as they were."""

    when = "early"  # in the second look: one pass of a few rows: whatever takes longer may use up the time
    before: Mapping[str, Array] = {}  # some numbers of each, by layer and attribute

    def on_examined(self, model: keras.Model, pipeline: Any) -> None:
        """See `PostRunCheck.on_examined`."""
        if not has_own_train_step(model):  # which may train them by itself
            self.before = {name: _some(variable) for name, variable in _untracked(model)}

    def facts(self) -> Iterable[Any]:
        """Return them with the optimizer that lacks them; where layers are made in each call, these alone."""
        found = vanishing_layers(self.subject.asked) or self._found()
        return () if found is None else (found, optimizer_facts(self.subject.model))

    def _found(self) -> LeafFacts | None:
        subject, model = self.subject.asked, self.subject.model
        still = [
            (name, variable)
            for name, variable in _untracked(model)
            if name in self.before and np.array_equal(self.before[name], _some(variable))
        ]
        if not still:
            return None
        try:
            with own_run(), tf.GradientTape() as tape:
                outputs = subject.outputs({name: rows[:ROWS] for name, rows in subject.inputs.items()})
                total = tf.add_n([tf.reduce_sum(tf.cast(part, tf.float32)) for part in outputs])
            gradients = tape.gradient(total, [variable for _, variable in still])
        except Exception:  # of the model, which may not take so few rows; or the time is over
            return None
        reached = {
            name: int(np.prod(variable.shape))
            for (name, variable), gradient in zip(still, gradients, strict=True)
            if gradient is not None
        }
        trained = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
        return LeafFacts({}, {}, trained, untracked=reached) if reached else None


def _untracked(model: keras.Model) -> Iterator[tuple[str, tf.Variable]]:
    """Yield variables that are more than a number, as a weight that a callback sets may be."""
    known = {id(getattr(variable, "_value", None)) for variable in model.variables}
    for layer in model._flatten_layers():
        for attribute, value in list(vars(layer).items()):
            if attribute.startswith("_self_"):  # TensorFlow's own, of the same variables
                continue
            for place, part in _parts(value):
                wanted = isinstance(part, tf.Variable) and part.trainable and part.dtype.is_floating
                if wanted and part.shape.rank and id(part) not in known:
                    known.add(id(part))
                    yield f"{layer.name}/{attribute}{place}", part


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value, or the parts of a list or dict of Python's, with their places in it."""
    if isinstance(value, list | tuple):
        yield from ((f"[{number}]", part) for number, part in enumerate(value))
    elif isinstance(value, dict):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    else:
        yield "", value


def _some(variable: tf.Variable) -> Array:
    return np.array(tf.reshape(variable, (-1,))[:NUMBERS])
