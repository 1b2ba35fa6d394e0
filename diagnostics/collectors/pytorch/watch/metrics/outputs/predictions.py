"""Counts a classifier's predictions and labels, in training and in evaluation.

In a plain loop only the loss gets the labels; `cross_entropy_labels` recovers them from its gradient. A single
logit counts as two, the first of them 0, as in binary cross entropy.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.isolation.user_modes import call_without_user_modes
from diagnostics.collectors.pytorch.batch import certain_prediction
from diagnostics.collectors.pytorch.discover.batch_source import latest_batch
from diagnostics.collectors.pytorch.discover.loss_calls import OF_CLASSES, evaluation_calls
from diagnostics.collectors.pytorch.watch.record.norms import taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.collectors.shared.history import History
from diagnostics.collectors.shared.target_recovery import recognise
from diagnostics.facts.array import Array
from diagnostics.facts.training import PredictionFacts

ROWS = 256  # examples looked at in one pass
MAX_CLASSES = 1024  # of a wider output nothing is kept
KEPT = 256  # training passes remembered in full, and as many of those before
PASSES = 64  # of one evaluation in a row; then every second, every fourth …
EVALUATIONS = 256  # remembered, the latest
CONFUSED = 64  # classes at most, of which it is counted which one is taken for which
TOLERANCE = 1e-3  # of a gradient against the form that it should have
SMALLEST = 1e-30  # of a probability
HALF = 0.02  # the same where it was computed in half precision, with eight bits to the number
TOGETHER = 16  # passes that are read and counted at once; one by one, many small operations would cost more
TOGETHER_BYTES = 8 * 2**20


@dataclass
class _Evaluation:
    """Counts (classes,) of answers and labels of one evaluation, and of the answers that were right."""

    answers: Array
    labels: Array
    right: int = 0
    passes: int = 0
    squares: float = 0.0  # of the right answers in a pass, over its labels; summed

    @property
    def spread(self) -> float:
        """How far the shares of right answers in the passes lie apart, in standard deviations (chi squared)."""
        examples, freedom = int(self.labels.sum()), self.passes - 1
        variance = self.right * (examples - self.right)
        if freedom < 1 or not variance:
            return 0.0
        chi_squared = (self.squares - self.right**2 / examples) * examples**2 / variance
        return float((chi_squared - freedom) / math.sqrt(2 * freedom))


@dataclass
class _Look:
    """One pass: scores (rows, classes) or predictions (rows,), labels (rows,), gradient of the scores.

    Labels of an evaluation may be numbers 0.0 and 1.0, as binary cross entropy takes them. Beside: integers
    (rows,) that stand in the loader's batch beside the inputs, which may be the labels.
    """

    step: int
    scores: Tensor
    labels: Tensor | None
    gradient: Tensor | None = None
    output: int = 0  # address of the output
    beside: Tensor | None = None


class Predictions(TrainingProbe):
    """Copies a few outputs of sampled passes; the copies stay on the device until they are read."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._pending: list[_Look] = []
        self._evaluated: list[_Look] = []
        self._handed: dict[int, Tensor] = {}
        self._last = self._evaluation = -1
        self._pending_bytes = 0
        self._passes = 0
        self._stride = 1
        self._unlabelled: _Look | None = None  # of the latest pass of an evaluation
        self._num_outputs: int | None = None
        self._rows: History | None = None
        self._evaluations: dict[int, _Evaluation] = {}
        self._confused: tuple[int, Array] | None = None  # of the latest evaluation: its step
        self._softmax: bool | None = None
        self._plain: bool | None = None
        self._beside: bool | None = None  # whether what stands beside the inputs are the labels
        # Of the running pass: the labels that the model was called with, and what stands beside its inputs.
        self._labels: tuple[Any, Tensor | None] = None, None

    def on_pass_begin(self, step: int, args: Any, kwargs: Any) -> None:
        """Look for the labels of a pass."""
        self._labels = kwargs.get("labels"), latest_batch.labels_beside((args, kwargs))

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Look for the labels of a pass without gradients."""
        self.on_pass_begin(step, args, kwargs)

    def on_pass_end(self, step: int, output: Any, inputs: Any) -> None:
        """Record a training pass, and the gradient of its scores."""
        (labels, beside), self._labels = self._labels, (None, None)
        scores = _scores(output)
        if scores is None or not scores.requires_grad:
            return
        look = _Look(step, _copy(scores), _label_copy(labels, len(scores)))
        look.beside = _label_copy(beside, len(scores))

        reference = weakref.ref(self)  # the graph may outlive the training, and is not to hold on to that

        def came(gradient: Tensor) -> None:
            probe = reference()
            if probe is not None and probe._last != step:
                probe._last = step
                look.gradient = _copy(gradient)
                probe._pending.append(look)
                probe._pending_bytes += 2 * look.scores.nbytes

        scores.register_hook(functools.partial(call_without_user_modes, came))

    def on_evaluation_end(self, step: int, output: Any) -> None:
        """Record the predictions of a pass without gradients."""
        (labels, beside), self._labels = self._labels, (None, None)
        if self._evaluation != step:
            self._evaluation, self._passes, self._stride = step, 0, 1
        self._passes += 1
        self._unlabelled = None
        if self._passes > PASSES * self._stride * 2:
            self._stride *= 2
        if self._passes % self._stride:
            return
        scores = _scores(output)
        if scores is not None:
            given = _label_copy(labels, len(scores))
            if given is None and _is_float_per_row(labels, scores):
                given = _copy(labels.reshape(-1))
            look = _Look(step, _answers(scores[:ROWS]), given, output=scores.data_ptr())
            look.beside = _label_copy(beside, len(scores))
            self._evaluated.append(look)
            if given is None:
                self._unlabelled = look
                evaluation_calls.join(self.heard, OF_CLASSES)

    def heard(self, prediction: Tensor, target: Tensor) -> None:
        """Take the labels that a loss got for the latest output of an evaluation."""
        look = self._unlabelled
        if look is None or look.output != prediction.data_ptr():
            return
        self._unlabelled = None
        if prediction.ndim == 2 and prediction.shape[1] > 1:
            look.labels = _label_copy(target, len(prediction))
        elif target.numel() == prediction.numel() == len(prediction):
            look.labels = _copy(target.reshape(-1))

    def on_training_again(self) -> None:
        """Hear no more losses of an evaluation."""
        self._unlabelled = None
        evaluation_calls.leave(self.heard)

    def on_labels(self, step: int, labels: Any) -> None:
        """Record the labels that the loop passes for a step."""
        copy = _label_copy(labels, None)
        if copy is not None:
            self._handed.setdefault(step, copy)
            if len(self._handed) > 2 * TOGETHER:
                self._handed.pop(next(iter(self._handed)), None)

    def on_read(self, step: int) -> None:
        """Read if there is enough to be worth it."""
        if len(self._pending) > TOGETHER or self._pending_bytes > TOGETHER_BYTES:
            self._read(step)

    def _read(self, before: int) -> None:
        """Read the records and count them; of training only the steps before this one.

        Args:
            before: a step.
        """
        pending = [look for look in self._pending if look.step < before]
        del self._pending[: len(pending)]
        self._pending_bytes = 0
        evaluated = taken(self._evaluated)
        late = {look.step: self._handed.pop(look.step) for look in pending if look.step in self._handed}
        looks = pending + evaluated
        parts = [part for look in looks for part in _parts(look) if part is not None]
        host = to_host(dict(enumerate([*parts, *late.values()])))
        values = iter([host[number] for number in range(len(host))])
        read = [[next(values) if part is not None else None for part in _parts(look)] for look in looks]
        on_host = dict(zip(late, values, strict=True))
        learned = []
        for look, (scores, labels, gradient, beside) in zip(pending, read, strict=False):
            assert look.gradient is not None
            assert scores is not None
            assert gradient is not None
            if self._same_width(scores):
                tolerance = HALF if look.gradient.element_size() < 4 else TOLERANCE
                learned.append((look.step, scores, on_host.get(look.step, labels), gradient, beside, tolerance))
        if learned:
            self._learned(learned)
        for look, (answers, labels, _, beside) in zip(evaluated, read[len(pending) :], strict=True):
            assert answers is not None
            self._answered(look.step, answers, beside if labels is None and self._beside else labels)

    def facts(self) -> Iterator[PredictionFacts | None]:
        """Yield the counts."""
        self._read_now()
        yield self._counted()

    def _read_now(self) -> None:
        read = self._read if self.subject.is_own() else self.on_read
        read(self.subject.steps)

    def _counted(self) -> PredictionFacts | None:
        """Return the counts; None if no classifier was seen."""
        if self._rows is None or not self._num_outputs:
            return None
        rows = self._rows.arrays()
        evaluations = sorted(self._evaluations.items())
        answers = [one.answers for _, one in evaluations]
        labels = [one.labels for _, one in evaluations]
        return PredictionFacts(
            steps=rows["steps"],
            answers=rows["answers"],
            labels=rows["labels"],
            right=rows["right"],
            cross_entropies=rows["cross_entropies"],
            softmax_loss=bool(self._softmax),
            plain_loss=bool(self._plain),
            evaluation_steps=np.array([step for step, _ in evaluations], np.int64),
            evaluation_answers=np.array(answers, np.int64).reshape(-1, self._num_outputs),
            evaluation_labels=np.array(labels, np.int64).reshape(-1, self._num_outputs),
            evaluation_right=np.array([one.right for _, one in evaluations], np.int64),
            evaluation_spread=np.array([one.spread for _, one in evaluations], np.float64),
            last_confusion=None if self._confused is None else self._confused[1],
        )

    def _learned(self, passes: list[tuple[int, Array, Array | None, Array, Array | None, float]]) -> None:
        """Count passes of training: step, scores, labels, gradient, what stands beside, tolerance of each."""
        sizes = np.array([len(scores) for _, scores, *_ in passes])
        starts = np.cumsum(sizes) - sizes
        logits = np.concatenate([_as_logits(scores) for _, scores, *_ in passes])
        gradient = np.concatenate([_as_logits(gradient, negate=True) for *_, gradient, _, _ in passes])
        found = recognise(logits, gradient, starts, np.repeat([tolerance for *_, tolerance in passes], sizes))
        if found.telling.any():
            self._softmax = self._softmax is not False and bool(found.softmax[found.telling].all())
            self._plain = self._plain is not False and bool(found.plain[found.telling].all())
        width = logits.shape[1]
        labels = found.labels
        for (_, scores, handed, _, beside, _), start in zip(passes, starts, strict=True):
            usable = _usable(handed, len(scores), width)
            if usable is not None:
                labels[start : start + len(scores)] = usable
            self._complete(labels[start : start + len(scores)], _usable(beside, len(scores), width))
        known, answers = labels >= 0, logits.argmax(axis=1)
        surprise = np.where(known, -np.log(found.shares[np.arange(len(labels)), labels] + SMALLEST), 0)
        counted = np.add.reduceat(known.astype(np.int64), starts)
        right = np.add.reduceat((known & (answers == labels)).astype(np.int64), starts)
        entropies = np.add.reduceat(surprise, starts) / np.where(counted, counted, np.nan)
        of_pass = np.repeat(np.arange(len(passes)) * width, sizes)
        each = len(passes) * width
        answer_counts = np.bincount(of_pass + answers, minlength=each).reshape(-1, width)
        label_counts = np.bincount((of_pass + labels)[known], minlength=each).reshape(-1, width)
        if self._rows is None:
            fields = [(name, np.int64, (width,)) for name in ("answers", "labels")]
            self._rows = History(
                [("steps", np.int64), *fields, ("right", np.int64), ("cross_entropies", np.float64)], KEPT, KEPT
            )
        for place, (step, *_) in enumerate(passes):
            self._rows.append((step, answer_counts[place], label_counts[place], right[place], entropies[place]))

    def _complete(self, labels: Array, beside: Array | None) -> None:
        """See whether what stands beside the inputs are the labels, in every pass; if so, fill in unknown ones.

        A model that is sure of its answers has gradients too small to tell the labels by.
        """
        known = labels >= 0
        if self._beside is not False and known.any():
            self._beside = beside is not None and bool((labels[known] == beside[known]).all())
        if self._beside and beside is not None:
            labels[~known] = beside[~known]

    def _answered(self, step: int, answers: Array, labels: Array | None) -> None:
        width = self._num_outputs
        if not width or answers.max(initial=0) >= width:
            return  # before the first step, or of another output than the one that learns
        one = self._evaluations.setdefault(step, _Evaluation(np.zeros(width, np.int64), np.zeros(width, np.int64)))
        one.answers += np.bincount(answers[answers >= 0], minlength=width)
        usable = _usable(_as_classes(labels), len(answers), width)
        if usable is not None:
            known = (usable >= 0) & (answers >= 0)
            one.labels += np.bincount(usable[known], minlength=width)
            right, count = int((usable == answers)[known].sum()), int(known.sum())
            one.right += right
            if count:
                one.passes += 1
                one.squares += right**2 / count
            self._confuse(step, usable[known], answers[known], width)
        while len(self._evaluations) > EVALUATIONS:
            del self._evaluations[next(iter(self._evaluations))]

    def _confuse(self, step: int, labels: Array, answers: Array, width: int) -> None:
        if width > CONFUSED:
            return
        if self._confused is None or self._confused[0] != step:
            self._confused = step, np.zeros((width, width), np.int64)
        np.add.at(self._confused[1], (labels, answers), 1)

    def _same_width(self, scores: Array) -> bool:
        """Whether the output is as wide as the first that was seen, and finite."""
        width = max(2, scores.shape[1]) if scores.ndim == 2 else 2
        self._num_outputs = self._num_outputs or width
        return width == self._num_outputs and bool(np.isfinite(scores).all())


def _scores(output: Any) -> Tensor | None:
    """Return the logits (rows, classes) or (rows,) of an output; None if it holds no such thing."""
    output = certain_prediction(output)
    if not isinstance(output, Tensor) or not output.is_floating_point() or output.ndim not in (1, 2):
        return None
    return output if output.numel() and (output.ndim == 1 or output.shape[1] <= MAX_CLASSES) else None


def _answers(scores: Tensor) -> Tensor:
    """Return the class (rows,) with the highest score, on the device; -1 where it is NaN or infinite."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        scores = scores.reshape(-1, 1)
        return torch.where(scores.isfinite(), scores > 0, -1).reshape(-1)
    highest, answers = scores.max(dim=1)
    return torch.where(highest.isfinite(), answers, -1)


def _copy(values: Tensor) -> Tensor:
    return values.detach()[:ROWS].clone()


def _parts(look: _Look) -> tuple[Tensor | None, ...]:
    return look.scores, look.labels, look.gradient, look.beside


def _label_copy(labels: Any, rows: int | None) -> Tensor | None:
    """Copy class labels (rows,); None if they are none."""
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.ndim not in (1, 2):
        return None
    if (labels.ndim == 2 and labels.shape[1] != 1) or (rows is not None and len(labels) != rows):
        return None
    return _copy(labels.reshape(-1))


def _is_float_per_row(labels: Any, scores: Tensor) -> bool:
    """Return whether labels are a floating-point number for each row of single logits; see `_as_classes`."""
    if not isinstance(labels, Tensor) or not labels.is_floating_point():
        return False
    return bool(labels.numel() == scores.numel() == len(scores))


def _usable(labels: Array | None, rows: int, width: int) -> Array | None:
    """Return labels with -1 for those to be ignored; None if they do not belong to these outputs."""
    if labels is None or len(labels) != rows or (labels >= width).any():
        return None
    return np.where(labels < 0, -1, labels).astype(np.int64)


def _as_classes(labels: Array | None) -> Array | None:
    """Read the numbers 0.0 and 1.0 as classes; None if there are others."""
    if labels is None or labels.dtype.kind != "f":
        return labels
    return labels.astype(np.int64) if bool(((labels == 0) | (labels == 1)).all()) else None


def _as_logits(values: Array, negate: bool = False) -> Array:
    """Widen a single logit (rows,) or (rows, 1) to two, (rows, 2), and the gradient by it likewise."""
    values = values.astype(np.float64).reshape(len(values), -1)
    if values.shape[1] > 1:
        return values
    return np.hstack([-values if negate else np.zeros_like(values), values])
