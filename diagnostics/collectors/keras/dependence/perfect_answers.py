"""Asks a loss that the script wrote itself what it makes of answers that are right."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.harmless_code import is_library
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.keras.harmless import TRUSTED, of_loss
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import LossAtTarget

from .subject import KerasSubject, OutOfTime, Unclear

NUMBERS = 8  # of an answer: fewer may be a distance or a score, which is to be low where the target is high
NEARLY = 0.01  # of the way to the mean: a logarithm of no error at all is infinite
OPPOSITE = -0.5  # correlation of single answers with their targets: no distance, nor a score that is to be low
DISTINCT = 0.5  # of the rows have a target of their own: numbers, and no labels of pairs
SAME = 1e-4  # of a loss: then it takes no notice of the answers' scale


def answer_losses(subject: KerasSubject) -> LossAtTarget | None:
    """Compute the loss of right answers, of one answer for all, and of the model's; None where that says nothing.

    Only for a loss with code of the script's, that can be run without being noticed, of one output with the shape
    of its target.
    """
    loss, target = subject.model.loss, subject.target
    if target is None or subject.weighted or not is_own(subject.model):
        return None
    with own_run(), own_warnings_ignored():
        try:
            answers = subject.ask(subject.inputs).main
            return _compared(loss, target.astype(np.float32), answers)
        except (OutOfTime, Unclear):
            return None
        except Exception:  # of the loss, which may want another dtype or a part of the model
            return None


def _compared(loss: Any, target: Array, answers: Array) -> LossAtTarget | None:
    shape = target.shape
    if shape != answers.shape or not np.isfinite(target).all():
        return None
    if int(np.prod(shape[1:])) < NUMBERS and not _are_opposite(target, answers):
        return None
    mean = np.broadcast_to(target.mean(axis=0), shape)
    if np.allclose(mean, target):
        return None

    def of(values: Array) -> float:
        return float(tf.reduce_mean(loss(tf.constant(target), tf.constant(values, tf.float32))))

    right = (1 - NEARLY) * target + NEARLY * mean
    found = of(right), of(mean), of(answers)
    if not np.isfinite(found).all():
        return None
    return LossAtTarget(
        name=getattr(loss, "__name__", type(loss).__name__),
        right=found[0],
        constant=found[1],
        reached=found[2],
        in_unit_range=bool(target.min() >= 0 and target.max() <= 1) and target.ndim > 2,
        scale_free=abs(of(2 * right) - found[0]) < SAME * abs(found[0]) + SAME,
    )


def _are_opposite(target: Array, answers: Array) -> bool:
    """Whether single answers are the lower, the higher their target is."""
    if target.size != len(target) or len(np.unique(target)) < DISTINCT * len(target) or not answers.std():
        return False
    return bool(np.corrcoef(target.reshape(-1), answers.reshape(-1))[0, 1] <= OPPOSITE)


def is_own(model: keras.Model) -> bool:
    """Whether a model's loss is user code without side effects."""
    kind = model.loss if isinstance(model.loss, FunctionType) else getattr(type(model.loss), "call", None)
    return isinstance(kind, FunctionType) and not is_library(kind, TRUSTED) and of_loss(model).objection is None
