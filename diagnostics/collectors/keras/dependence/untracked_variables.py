"""Finds trainable variables of TensorFlow that layers keep as attributes, where Keras does not look for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.keras.model import has_own_train_step
from diagnostics.facts.array import Array
from diagnostics.facts.loss import LeafFacts

from .subject import KerasSubject

ROWS = 4  # of the kept batch
NUMBERS = 64  # of each variable, by which a change is recognised

Values = Mapping[str, Array]


def values_of_untracked(model: keras.Model) -> Values:
    """Return some numbers of each such variable, by layer and attribute, to be compared after the training."""
    if has_own_train_step(model):
        return {}  # which may train them by itself
    return {name: _some(variable) for name, variable in _untracked(model)}


def untracked_variables(subject: KerasSubject, before: Values) -> LeafFacts | None:
    """Return the variables that the answers depend on and that the training has left as they were; None if none.

    Args:
        subject: the model after its training.
        before: what `values_of_untracked` returned before it.
    """
    still = [
        (name, variable)
        for name, variable in _untracked(subject.model)
        if name in before and np.array_equal(before[name], _some(variable))
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
    trained = sum(int(np.prod(v.shape)) for v in subject.model.trainable_variables)
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
