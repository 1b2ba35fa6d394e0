"""Looks for a loss of the script's own that names its arguments in the order in which Keras does not give them."""

from __future__ import annotations

import inspect
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.facts.dependence import SwappedArguments

from .perfect_answers import is_own
from .subject import KerasSubject, OutOfTime, Unclear

ANSWERS = ("pred", "preds", "prediction", "predictions", "predicted", "hat", "output", "outputs", "logits")
TARGETS = ("true", "target", "targets", "label", "labels", "truth", "gt", "actual", "expected")
SAME = 1e-3  # of the loss: then it takes both alike, as a squared difference does


def turned_arguments(subject: KerasSubject) -> SwappedArguments | None:
    """Compute such a loss as Keras calls it, and the other way round; None of any other loss."""
    loss, target = subject.model.loss, subject.target
    if target is None or subject.weighted:
        return None
    names = _names(loss)
    if (
        not names
        or not (_is_one_of(names[0], ANSWERS) and _is_one_of(names[1], TARGETS))
        or not is_own(subject.model)
    ):
        return None
    with own_run(), own_warnings_ignored():
        try:
            answers = tf.constant(subject.ask(subject.inputs).main, tf.float32)
            given = tf.constant(target.astype(np.float32))
            as_called, turned = (
                float(tf.reduce_mean(loss(*pair))) for pair in ((given, answers), (answers, given))
            )
        except (OutOfTime, Unclear):
            return None
        except Exception:  # of the loss, which may want another dtype or a part of the model
            return None
    if abs(as_called - turned) <= SAME * max(abs(as_called), abs(turned)):
        return None
    return SwappedArguments(getattr(loss, "__name__", type(loss).__name__), *names, as_called, turned)


def _names(loss: Any) -> tuple[str, str] | None:
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
