"""Measurements of a call of `fit`; each is found by being here. TensorFlow may not be there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras

from diagnostics.collectors.probe import Probe
from diagnostics.facts.loss_graph import LossGraph

if TYPE_CHECKING:
    from diagnostics.collectors.keras.discover.unread_losses import LayerLosses


@dataclass
class FitCall:
    """A call of `fit`.

    Attributes:
        model: compiled.
        given: the arguments by name.
        epochs: steps made before the end of each, and the logs of it; filled by the call.
        graph: returns the graph of the loss of a traced step; None if it is not known.
        losses: that layers add.
        shows_batch: whether rows of the validation data are kept for the report.
    """

    model: keras.Model
    given: Mapping[str, Any]
    epochs: Sequence[tuple[int, Mapping[str, Any]]]
    graph: Callable[[], LossGraph | None]
    losses: LayerLosses
    shows_batch: bool


class FitProbe(Probe[FitCall]):
    """Measures one thing of a call of `fit`: before it ("first step"), or once it has ended."""


def on_tensorflow() -> bool:
    """Whether Keras runs on TensorFlow."""
    return bool(keras.backend.backend() == "tensorflow")
