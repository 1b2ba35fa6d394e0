"""What the checks of `post_run` have in common: a trained model that can be asked."""

from __future__ import annotations

from typing import Any

import keras

from diagnostics.collectors.probe import Probe

from .dependence.subject import KerasSubject


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
