"""What the checks of `post_run` have in common: a trained model that can be asked, and its own loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.harmless_code import is_library
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.probe import Probe
from diagnostics.facts.array import Array

from .dependence.subject import KerasSubject
from .harmless import TRUSTED, of_loss

OwnLoss = Callable[[Array, Array], float]
"""Computes the loss of targets and predictions."""

T = TypeVar("T")


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

    def with_own_loss(self, work: Callable[[OwnLoss, Array, Array], T | None]) -> T | None:
        """Do work with the loss, the targets and the predictions; None unless the loss is user code.

        It has to be code without side effects, of one output, without sample weights.
        """
        subject, loss = self.subject, self.model.loss
        if subject.target is None or subject.weighted or not _is_own(self.model):
            return None

        def compute(target: Array, answers: Array) -> float:
            return float(tf.reduce_mean(loss(*(tf.constant(one, tf.float32) for one in (target, answers)))))

        with own_run(), own_warnings_ignored():
            try:
                answers = subject.ask(subject.inputs).main
                return work(compute, subject.target.astype(np.float32), answers)
            except Exception:  # of the loss, which may want another dtype or a part of the model; or time is over
                return None


class PostRunCheck(Probe[TrainedModel]):
    """Measures one thing of a trained model."""

    def on_examined(self, model: keras.Model, pipeline: Any) -> None:
        """Keep what is needed of the first batch. The model must not be kept: a script may free each of many."""


def name_of_loss(model: keras.Model) -> str:
    """Return what the script calls its loss."""
    return str(getattr(model.loss, "__name__", type(model.loss).__name__))


def _is_own(model: keras.Model) -> bool:
    """Whether a model's loss is user code without side effects."""
    kind = model.loss if isinstance(model.loss, FunctionType) else getattr(type(model.loss), "call", None)
    return isinstance(kind, FunctionType) and not is_library(kind, TRUSTED) and of_loss(model).objection is None
