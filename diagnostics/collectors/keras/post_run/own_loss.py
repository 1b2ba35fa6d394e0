"""Asks a loss that the script wrote itself what it makes of right predictions, and of swapped arguments."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.harmless_code import is_library
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.keras.harmless import TRUSTED, of_loss
from diagnostics.collectors.keras.post_run import PostRunCheck
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import LossAtTarget, SwappedArguments

NUMBERS = 8  # of an answer: fewer may be a distance or a score, which is to be low where the target is high
NEARLY = 0.01  # of the way to the mean: a logarithm of no error at all is infinite
OPPOSITE = -0.5  # correlation of single answers with their targets: no distance, nor a score that is to be low
DISTINCT = 0.5  # of the rows have a target of their own: numbers, and no labels of pairs
REL_TOLERANCE = 1e-4  # of a loss: then it takes no notice of the answers' scale
SAME_SWAPPED = 1e-3  # of a loss: then it takes both arguments alike, as a squared difference does
SURE = 0.98  # of the largest share in a target: a surer prediction is hardly another one
GROWS = 0.5  # of what sure predictions cost: with a hundredth of the doubt, a logarithm costs that much more
SUM = 1e-3  # tolerance for shares that add up to 1
ENTROPIES = ("categorical_crossentropy", "binary_crossentropy")
ANSWERS = ("pred", "preds", "prediction", "predictions", "predicted", "hat", "output", "outputs", "logits")
TARGETS = ("true", "target", "targets", "label", "labels", "truth", "gt", "actual", "expected")


class OwnLoss(PostRunCheck):
    """Computes a loss with code of the script's, that can be run without being noticed, of one output."""

    def facts(self) -> Iterable[LossAtTarget | SwappedArguments]:
        """Return nothing of any other loss, nor where there are sample weights."""
        subject, model = self.subject.asked, self.subject.model
        if subject.target is None or subject.weighted or not _is_own(model):
            return []
        with own_run(), own_warnings_ignored():
            try:
                answers = subject.ask(subject.inputs).main
            except Exception:  # the time is over
                return []
            target = subject.target.astype(np.float32)
            return [*self._found(_swapped, target, answers), *self._found(_at_target, target, answers)]

    def _found(self, compare: Any, target: Array, answers: Array) -> list[Any]:
        loss = self.subject.model.loss

        def compute(*given: Array) -> float:
            return float(tf.reduce_mean(loss(*(tf.constant(one, tf.float32) for one in given))))

        try:
            return list(compare(loss, compute, target, answers))
        except Exception:  # of the loss, which may want another dtype or a part of the model
            return []


def _at_target(loss: Any, compute: Any, target: Array, answers: Array) -> Iterator[LossAtTarget]:
    """Compare the loss of right answers with that of one answer for all, and of the model's."""
    shape = target.shape
    if shape != answers.shape or not np.isfinite(target).all():
        return
    if int(np.prod(shape[1:])) < NUMBERS and not _are_opposite(target, answers):
        return
    mean = np.broadcast_to(target.mean(axis=0), shape)
    if np.allclose(mean, target):
        return
    right = (1 - NEARLY) * target + NEARLY * mean
    at_target, constant, reached = (compute(target, values) for values in (right, mean, answers))
    if np.isfinite((at_target, constant, reached)).all():
        scaled = abs(compute(target, 2 * right) - at_target)
        yield LossAtTarget(
            name=_name_of(loss),
            right=at_target,
            constant=constant,
            reached=reached,
            in_unit_range=bool(target.min() >= 0 and target.max() <= 1) and target.ndim > 2,
            scale_free=scaled < REL_TOLERANCE * abs(at_target) + REL_TOLERANCE,
        )


def _swapped(loss: Any, compute: Any, target: Array, answers: Array) -> Iterator[SwappedArguments]:
    """Compute a loss as Keras calls it and the other way round, which is the right one by name or by value."""
    names = _arguments(loss)
    named = names is not None and _is_one_of(names[0], ANSWERS) and _is_one_of(names[1], TARGETS)
    as_called, turned = compute(target, answers), compute(answers, target)
    if names is None or abs(as_called - turned) <= SAME_SWAPPED * max(abs(as_called), abs(turned)):
        return
    called = None if named else _entropy_turned(as_called, turned, target, answers)
    found = SwappedArguments(_name_of(loss), *names, as_called, turned, called)
    if named or called is not None:
        yield found
    elif _are_shares(target) and _are_shares(answers) and target.max(axis=-1).mean() < SURE:
        sure = np.eye(target.shape[-1], dtype=np.float32)[target.argmax(axis=-1)]
        mixed = [(one, NEARLY) for one in (target, sure, target.mean(axis=0))] + [(sure, NEARLY**2)]
        others = [np.broadcast_to((1 - part) * one + part / target.shape[-1], target.shape) for one, part in mixed]
        right, surer = (compute(target, one) for one in others[:2])
        at_target, at_sure, at_mean, at_surest = (compute(one, target) for one in others)
        is_log = at_surest - at_sure > GROWS * (at_sure - at_target)
        if np.isfinite([right, surer]).all() and at_target < min(at_sure, at_mean) and is_log:
            yield dataclasses.replace(found, right=right, surer=surer)


def _entropy_turned(as_called: float, turned: float, target: Array, answers: Array) -> str | None:
    """Return the cross entropy of Keras that a loss equals, but with its arguments the other way round."""
    if target.shape != answers.shape:
        return None
    for name in ENTROPIES:
        entropy = getattr(keras.losses, name)
        here, there = (float(tf.reduce_mean(entropy(*pair))) for pair in ((target, answers), (answers, target)))
        if np.allclose((as_called, turned), (there, here), rtol=REL_TOLERANCE, atol=0):
            return name
    return None


def _are_shares(array: Array) -> bool:
    """Return whether the last axis holds shares of classes."""
    whole = array.ndim == 2 and array.shape[1] > 1 and array.min() >= 0
    return bool(whole and np.allclose(array.sum(axis=-1), 1, atol=SUM))


def _is_own(model: keras.Model) -> bool:
    """Whether a model's loss is user code without side effects."""
    kind = model.loss if isinstance(model.loss, FunctionType) else getattr(type(model.loss), "call", None)
    return isinstance(kind, FunctionType) and not is_library(kind, TRUSTED) and of_loss(model).objection is None


def _name_of(loss: Any) -> str:
    return str(getattr(loss, "__name__", type(loss).__name__))


def _are_opposite(target: Array, answers: Array) -> bool:
    """Whether single answers are the lower, the higher their target is."""
    if target.size != len(target) or len(np.unique(target)) < DISTINCT * len(target) or not answers.std():
        return False
    return bool(np.corrcoef(target.reshape(-1), answers.reshape(-1))[0, 1] <= OPPOSITE)


def _arguments(loss: Any) -> tuple[str, str] | None:
    """Return the names of the first two arguments of a function, or of the `call` of a loss."""
    try:
        given = list(inspect.signature(loss.call if isinstance(loss, keras.losses.Loss) else loss).parameters)
    except (TypeError, ValueError):
        return None
    return (given[0], given[1]) if len(given) > 1 else None


def _is_one_of(name: str, words: tuple[str, ...]) -> bool:
    parts = name.lower().split("_")
    plain = name.lower() == "y" and words is TARGETS
    return plain or any(part in words for part in parts) or name.lower().removeprefix("y") in words
