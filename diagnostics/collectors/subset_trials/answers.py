"""Reads what a copy answers, step by step: the probability of the right class. NumPy only."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import LossKind, Reads

SHARP = 0.8  # mean probability of the right class, from which on examples count as learned by heart
RIGHT = 0.95  # share of the labels that must be right as well: of 32 examples one may be wrong, of 5 none
CLOSE = 0.1  # of the loss of the best constant prediction, or of the first loss: likewise for a regression
ZERO = 1e-9  # a loss at which nothing is left to learn
STEPS_KEPT = frozenset((0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 64, 85, 113, 150, 200, 267, 355, 474))
MOST_SCORES = 5_000_000  # of one step; beyond that to read them takes longer than the step
MOST_EXAMPLES, MOST_CLASSES = 5, 1000  # whose probabilities are kept, at up to 22 steps: 440 KB

CLASSIFIES: tuple[LossKind, ...] = ("cross_entropy", "binary_cross_entropy")


@dataclass(frozen=True)
class Answers:
    """What a copy answers at one step.

    Attributes:
        values: float (examples,): see `SubsetRun.answers`.
        right: share of the labels whose class is the likeliest; None for a regression.
        probabilities: float (examples, classes); None if an example has more than one label.
    """

    values: Array
    right: float | None = None
    probabilities: Array | None = None


def class_answers(scores: Array, labels: Array, reads: Reads | None, ignored: int | None) -> Answers | None:
    """Read a classifier's answers.

    Args:
        scores: float (examples, ..., classes).
        labels: integers (examples, ...), class indices.
        reads: what the scores are; logits if not known.
        ignored: the label that the loss leaves out.

    Returns:
        None if no label counts, if one is out of range, or if the scores are too many or not finite.
    """
    if scores.size > MOST_SCORES or not np.isfinite(scores).all():
        return None
    shares = _probabilities(scores, reads)
    counts = labels != ignored if ignored is not None else np.ones(labels.shape, dtype=np.bool_)
    if not counts.any() or labels[counts].min() < 0 or labels[counts].max() >= shares.shape[-1]:
        return None
    chosen = np.where(counts, labels, 0).astype(np.int64)
    right = np.take_along_axis(shares, chosen[..., None], axis=-1)[..., 0]
    hit = shares.argmax(-1) == chosen
    return Answers(_by_example(right, counts), float(hit[counts].mean()), shares if labels.ndim == 1 else None)


def binary_answers(scores: Array, targets: Array, reads: Reads | None) -> Answers | None:
    """Read the answers of outputs (examples, ...) of two classes each, targets 0 and 1; None for other targets."""
    if not bool(((targets == 0) | (targets == 1)).all()) or not np.isfinite(scores).all():
        return None
    scores = scores.astype(np.float64)
    ones = scores if reads == "probabilities" else _sigmoid(scores)
    right = np.where(targets == 1, ones, 1 - ones)
    single = right.size == len(right)
    shares = np.stack([1 - ones.reshape(-1), ones.reshape(-1)], axis=1) if single else None
    return Answers(_by_example(right, np.ones(right.shape, dtype=np.bool_)), float((right > 0.5).mean()), shares)


def _probabilities(scores: Array, reads: Reads | None) -> Array:
    if reads == "probabilities":
        return scores
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(-1, keepdims=True))


def _sigmoid(scores: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -500, 500))))


def _by_example(values: Array, counts: Array) -> Array:
    """Return the mean over the labels of each example that count; NaN for an example without any."""
    values, counts = values.reshape(len(values), -1), counts.reshape(len(counts), -1)
    with np.errstate(invalid="ignore"):
        return np.asarray((values * counts).sum(1) / counts.sum(1))


class Seen:
    """Follows one run: its losses, and the answers at some of its steps.

    Args:
        examples: of the run.
        kind: of the loss of the whole batch.

    Attributes:
        baseline: the least loss of a constant prediction for these examples; None if not known, or no step yet.
        learned: whether the answers are as they should be.
    """

    def __init__(self, examples: int, kind: LossKind) -> None:
        self._examples, self._kind = examples, kind
        self.baseline: float | None = None
        self.learned = False
        self._kept: list[tuple[int, Answers]] = []
        self._latest: tuple[int, Answers] | None = None
        self._first: float | None = None
        self._steps = 0

    def start(self, found: Recognised) -> None:
        """Take what the loss of these examples is recognised as, at the first step."""
        if found.kind == self._kind and self._kind != "other":
            self.baseline = found.floor

    def add(self, loss: float, answers: Answers | None) -> None:
        """Take the loss before a step, and the answers that it was computed of."""
        self._first = loss if self._first is None else self._first
        if answers is not None:
            few = self._examples <= MOST_EXAMPLES
            self._latest = (self._steps, answers if few else replace(answers, probabilities=None))
            if self._steps in STEPS_KEPT:
                self._kept.append(self._latest)
        self._steps += 1
        self.learned = self._is_learned(loss, answers)

    @property
    def known_first(self) -> bool:
        """Whether a step was seen."""
        return self._first is not None

    def history(self) -> tuple[tuple[int, ...], Array | None, Array | None]:
        """Return the steps kept, the answers there, and the probabilities; see `SubsetRun`."""
        kept = list(self._kept)
        if self._latest is not None and (not kept or kept[-1][0] != self._latest[0]):
            kept.append(self._latest)
        if not kept:
            return (), None, None
        steps = tuple(step for step, _ in kept)
        shares = [answers.probabilities for _, answers in kept]
        few = all(share is not None and share.shape[1] <= MOST_CLASSES for share in shares)
        values = np.stack([answers.values for _, answers in kept]).astype(np.float32)
        return steps, values, np.stack([s for s in shares if s is not None]).astype(np.float32) if few else None

    def _is_learned(self, loss: float, answers: Answers | None) -> bool:
        if not math.isfinite(loss) or self._first is None:
            return False
        if self._kind in CLASSIFIES and answers is not None and answers.right is not None:
            return answers.right >= RIGHT and float(np.nanmean(answers.values)) >= SHARP
        if self._kind == "other":
            return 0 <= loss <= CLOSE * self._first
        reference = self.baseline if self.baseline is not None and self.baseline > ZERO else self._first
        share = CLOSE if self._kind != "mean_squared_error" or self.baseline else CLOSE**2  # a tenth of the error
        return loss <= max(share * reference, ZERO)
