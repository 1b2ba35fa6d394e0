"""Checks of a Keras model that a script has trained, once the script has ended; each is found by being here."""

from __future__ import annotations

from typing import Any

import keras

from diagnostics.collectors.keras.dependence.subject import KerasSubject
from diagnostics.collectors.probe import Probe


class TrainedModel:
    """A model whose training is over; until the script has ended, nothing of it is there.

    Attributes:
        model: as the script left it.
        asked: the same, with rows of its first batch.
        deadline: of `time.monotonic`.
    """

    model: keras.Model
    asked: KerasSubject
    deadline: float


class PostRunCheck(Probe[TrainedModel]):
    """Measures one thing of a trained model."""

    def on_examined(self, model: keras.Model, pipeline: Any) -> None:
        """Keep what is needed of the first batch. The model must not be kept: a script may free each of many."""
