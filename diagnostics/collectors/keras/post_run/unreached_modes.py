"""Finds layers whose state shows that they never ran in training mode, or cannot learn from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from diagnostics.collectors.keras.optimizer import steps_made
from diagnostics.collectors.keras.post_run import PostRunCheck
from diagnostics.facts.layers import NeverInTraining, StillStatistics

_DROPPING = (
    keras.layers.Dropout,
    keras.layers.SpatialDropout1D,
    keras.layers.SpatialDropout2D,
    keras.layers.SpatialDropout3D,
    keras.layers.GaussianDropout,
    keras.layers.GaussianNoise,
    keras.layers.AlphaDropout,
)


class UnreachedModes(PostRunCheck):
    """Reads the state of dropout and batch norm."""

    def facts(self) -> Iterable[Any]:
        """Return the layers that never ran in training mode, and those whose statistics stay as they were made."""
        model = self.subject.model
        return never_in_training(model, model.optimizer), still_statistics(model, model.optimizer)


def never_in_training(model: keras.Model, optimizer: object) -> NeverInTraining | None:
    """Return the layers if none of them ever ran in training mode; None if one did, or that is not known.

    A call in training mode moves the seed of dropout and the statistics of batch norm. Models within the model are
    left out: a base that is called with ``training=False`` keeps its statistics on purpose.
    """
    layers = [layer for layer in model.layers if not isinstance(layer, keras.Model) and _learns_in_training(layer)]
    if not layers or not all(map(_is_untouched, layers)):
        return None
    return NeverInTraining(tuple(layer.name for layer in layers), steps_made(optimizer))


def still_statistics(model: keras.Model, optimizer: object) -> StillStatistics | None:
    """Return the trained layers of batch norm whose statistics a momentum of 1 keeps as they were made.

    Those of a layer whose weights were loaded are others, and may be kept on purpose.
    """
    layers = [
        layer.name
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.BatchNormalization)
        and layer.trainable
        and layer.built
        and layer.momentum >= 1
        and _is_untouched(layer)
    ]
    return StillStatistics(tuple(layers), steps_made(optimizer)) if layers else None


def _learns_in_training(layer: keras.layers.Layer) -> bool:
    if isinstance(layer, keras.layers.BatchNormalization):
        return bool(layer.trainable and layer.built and layer.momentum < 1)
    return isinstance(layer, _DROPPING) and getattr(layer, "seed_generator", None) is not None


def _is_untouched(layer: keras.layers.Layer) -> bool:
    if isinstance(layer, keras.layers.BatchNormalization):
        return not np.asarray(layer.moving_mean).any() and bool((np.asarray(layer.moving_variance) == 1).all())
    return int(np.asarray(layer.seed_generator.state)[1]) == 0
