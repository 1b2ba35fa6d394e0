"""Asks a loss that the script wrote itself what it makes of predictions that are right."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from diagnostics.collectors.keras.post_run_check import OwnLoss, PostRunCheck, name_of_loss
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import LossAtTarget

NUMBERS = 8  # of an answer: fewer may be a distance or a score, which is to be low where the target is high
NEARLY = 0.01  # of the way to the mean: a logarithm of no error at all is infinite
OPPOSITE = -0.5  # correlation of single answers with their targets: no distance, nor a score that is to be low
DISTINCT = 0.5  # of the rows have a target of their own: numbers, and no labels of pairs
REL_TOLERANCE = 1e-4  # of a loss: then it takes no notice of the answers' scale


class OwnLossAtTarget(PostRunCheck):
    """Computes the loss of right answers, of one answer for all, and of the model's."""

    def facts(self) -> Iterable[LossAtTarget | None]:
        """Return nothing where that proves nothing; the loss has one output with the shape of its target."""
        return (self.subject.with_own_loss(self._compared),)

    def _compared(self, loss: OwnLoss, target: Array, answers: Array) -> LossAtTarget | None:
        shape = target.shape
        if shape != answers.shape or not np.isfinite(target).all():
            return None
        if int(np.prod(shape[1:])) < NUMBERS and not _are_opposite(target, answers):
            return None
        mean = np.broadcast_to(target.mean(axis=0), shape)
        if np.allclose(mean, target):
            return None
        right = (1 - NEARLY) * target + NEARLY * mean
        at_target, constant, reached = (loss(target, values) for values in (right, mean, answers))
        if not np.isfinite((at_target, constant, reached)).all():
            return None
        scaled = abs(loss(target, 2 * right) - at_target)
        return LossAtTarget(
            name=name_of_loss(self.subject.model),
            right=at_target,
            constant=constant,
            reached=reached,
            in_unit_range=bool(target.min() >= 0 and target.max() <= 1) and target.ndim > 2,
            scale_free=scaled < REL_TOLERANCE * abs(at_target) + REL_TOLERANCE,
        )


def _are_opposite(target: Array, answers: Array) -> bool:
    """Whether single answers are the lower, the higher their target is."""
    if target.size != len(target) or len(np.unique(target)) < DISTINCT * len(target) or not answers.std():
        return False
    return bool(np.corrcoef(target.reshape(-1), answers.reshape(-1))[0, 1] <= OPPOSITE)
