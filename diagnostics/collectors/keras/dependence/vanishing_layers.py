"""Finds layers that a model makes again each time that it is called."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.facts.loss_graph import LeafFacts

from .subject import KerasSubject

ROWS = 4  # of the kept batch


def vanishing_layers(subject: KerasSubject) -> LeafFacts | None:
    """Call a model twice, and return the layers with weights that each call makes for itself; None if none."""
    try:
        with own_run():
            first, second = _made(subject), _made(subject)
    except Exception:  # of the model, which may not take so few rows; or the time is over
        return None
    known = {id(layer) for layer in first}
    vanished: dict[str, int] = {}
    for layer in second:
        scalars = sum(int(np.prod(v.shape)) for v in layer._trainable_variables if len(v.shape) > 1)
        if scalars and id(layer) not in known:
            name = type(layer).__name__
            vanished[name] = vanished.get(name, 0) + scalars
    if not first or not vanished:
        return None
    trained = sum(int(np.prod(v.shape)) for v in subject.model.trainable_variables)
    return LeafFacts({}, {}, trained, vanished)


def _made(subject: KerasSubject) -> list[Any]:
    """Return the layers that a call builds, and that are not the model's own."""
    called, patches = list[Any](), Patches()

    def note(layer: Any, *_arguments: Any, **_options: Any) -> None:
        if not layer.built:
            called.append(layer)

    patches.before(keras.layers.Layer, "__call__", note)
    try:
        subject.ask({name: rows[:ROWS] for name, rows in subject.inputs.items()})
    finally:
        patches.undo()
    own = set(map(id, subject.model._flatten_layers()))
    return [layer for layer in called if layer.trainable and id(layer) not in own]
