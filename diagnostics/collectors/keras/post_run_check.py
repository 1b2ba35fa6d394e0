"""What the checks of `post_run` have in common: a trained model that can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from diagnostics.collectors.probe import Probe

from .dependence.subject import KerasSubject


@dataclass
class TrainedModel:
    """A model whose training is over.

    Attributes:
        deadline: of `time.monotonic`.
        asked: the model with rows of its first batch; None until the script has ended.
    """

    deadline: float = float("inf")
    asked: KerasSubject | None = None

    @property
    def subject(self) -> KerasSubject:
        """The model, to be asked."""
        assert self.asked is not None
        return self.asked

    @property
    def model(self) -> keras.Model:
        """The model, as the script left it."""
        return self.subject.model


class PostRunCheck(Probe[TrainedModel]):
    """Measures one thing of a trained model."""

    def on_examined(self, model: keras.Model, pipeline: Any) -> None:
        """Keep what is needed of the first batch. The model must not be kept: a script may free each of many."""
