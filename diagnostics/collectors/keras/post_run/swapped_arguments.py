"""Looks for a loss of the script's own that names its arguments in the order in which Keras does not give them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import keras

from diagnostics.collectors.keras.post_run_check import OwnLoss, PostRunCheck, name_of_loss
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import SwappedArguments

ANSWERS = ("pred", "preds", "prediction", "predictions", "predicted", "hat", "output", "outputs", "logits")
TARGETS = ("true", "target", "targets", "label", "labels", "truth", "gt", "actual", "expected")
REL_TOLERANCE = 1e-3  # of the loss: then it takes both alike, as a squared difference does


class OwnLossSwapped(PostRunCheck):
    """Computes such a loss as Keras calls it, and the other way round."""

    def facts(self) -> Iterable[SwappedArguments | None]:
        """Return nothing of any other loss."""
        names = _names(self.subject.model.loss)
        if not names or not (_is_one_of(names[0], ANSWERS) and _is_one_of(names[1], TARGETS)):
            return ()

        def compared(loss: OwnLoss, target: Array, answers: Array) -> SwappedArguments | None:
            as_called, turned = loss(target, answers), loss(answers, target)
            if abs(as_called - turned) <= REL_TOLERANCE * max(abs(as_called), abs(turned)):
                return None
            return SwappedArguments(name_of_loss(self.subject.model), *names, as_called, turned)

        return (self.subject.with_own_loss(compared),)


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
