"""What a classifier answers while it trains and while it is evaluated, and what would have been right.

The labels of a plain loop are seen by nobody but the loss. Its gradient gives them away: that of cross entropy by
the logits is softmax(logits) minus 1 at the label, for each example. So where the gradient is of this form the
label is its only negative entry, and the loss is known to be cross entropy without weights. A single logit counts
as two, the first of them 0, as in binary cross entropy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diagnostics.facts import Array
from diagnostics.history import History
from diagnostics.watch_facts import AnswerFacts

from .torch_gradients import to_host

ROWS = 256  # examples looked at in one pass
MOST_CLASSES = 1024  # of a wider output nothing is kept
KEPT = 256  # training passes remembered in full, and as many of those before
PASSES = 64  # of one evaluation in a row; then every second, every fourth …
EVALUATIONS = 256  # remembered, the latest
TOLERANCE = 1e-3  # of a gradient against the form that it should have
HALF = 0.02  # the same where it was computed in half precision, with eight bits to the number
SURE = 0.999  # of a probability: what is left of the gradient is mostly rounding
FEWEST = 8  # examples that show how much each counts


@dataclass
class _Look:
    """Of one pass: scores (rows, classes) or answers (rows,), labels (rows,) and the gradient by the scores."""

    step: int
    scores: Tensor
    labels: Tensor | None
    gradient: Tensor | None = None


class Predictions:
    """Looks at the outputs of chosen passes; small copies stay on the device until they are read."""

    def __init__(self) -> None:
        self._pending: list[_Look] = []
        self._evaluated: list[_Look] = []
        self._handed: dict[int, Tensor] = {}
        self._last = self._evaluation = -1
        self._passes = 0
        self._stride = 1
        self._num_outputs: int | None = None
        self._rows: History | None = None
        self._evaluations: dict[int, tuple[Array, Array]] = {}
        self._softmax: bool | None = None
        self._plain: bool | None = None

    def training(self, step: int, output: Any, labels: Any) -> None:
        """Listen for the gradient of a pass that learns."""
        scores = _scores(output)
        if scores is None or not scores.requires_grad:
            return
        look = _Look(step, _copy(scores), _label_copy(labels, len(scores)))

        def came(gradient: Tensor) -> None:
            if self._last != step:
                self._last = step
                look.gradient = _copy(gradient)
                self._pending.append(look)

        scores.register_hook(came)

    def evaluation(self, step: int, output: Any, labels: Any) -> None:
        """Note the answers of a pass without gradients."""
        if self._evaluation != step:
            self._evaluation, self._passes, self._stride = step, 0, 1
        self._passes += 1
        if self._passes > PASSES * self._stride * 2:
            self._stride *= 2
        if self._passes % self._stride:
            return
        scores = _scores(output)
        if scores is not None:
            self._evaluated.append(_Look(step, _answers(scores[:ROWS]), _label_copy(labels, len(scores))))

    def labels(self, step: int, labels: Any) -> None:
        """Take the labels that the loop hands over for a step."""
        copy = _label_copy(labels, None)
        if copy is not None:
            self._handed.setdefault(step, copy)

    def read(self, before: int) -> None:
        """Bring what was seen to the host and count it: of training the steps before this one only."""
        pending = [look for look in self._pending if look.step < before]
        self._pending = self._pending[len(pending) :]
        evaluated, self._evaluated = self._evaluated, []
        handed, self._handed = self._handed, {}
        looks = pending + evaluated
        parts = [part for look in looks for part in (look.scores, look.labels, look.gradient) if part is not None]
        host = to_host(dict(enumerate([*parts, *handed.values()])))
        values = iter([host[number] for number in range(len(host))])
        read = [[next(values) if p is not None else None for p in (k.scores, k.labels, k.gradient)] for k in looks]
        late = dict(zip(handed, values, strict=True))
        for look, (scores, labels, gradient) in zip(looks, read, strict=True):
            assert scores is not None
            if gradient is not None:
                assert look.gradient is not None
                tolerance = HALF if look.gradient.element_size() < 4 else TOLERANCE
                self._learned(look.step, scores, late.get(look.step, labels), gradient, tolerance)
            else:
                self._answered(look.step, scores, labels)

    def facts(self) -> AnswerFacts | None:
        """Return what was counted; None if no classifier was seen at work."""
        if self._rows is None or not self._num_outputs:
            return None
        rows = self._rows.arrays()
        evaluations = sorted(self._evaluations.items())
        answers = [counts for _, (counts, _) in evaluations]
        right = [labels for _, (_, labels) in evaluations]
        return AnswerFacts(
            steps=rows["steps"],
            answers=rows["answers"],
            labels=rows["labels"],
            right=rows["right"],
            cross_entropies=rows["cross_entropies"],
            softmax_loss=bool(self._softmax),
            plain_loss=bool(self._plain),
            evaluation_steps=np.array([step for step, _ in evaluations], np.int64),
            evaluation_answers=np.array(answers, np.int64).reshape(-1, self._num_outputs),
            evaluation_labels=np.array(right, np.int64).reshape(-1, self._num_outputs),
        )

    def _learned(self, step: int, scores: Array, labels: Array | None, gradient: Array, tolerance: float) -> None:
        if not self._same_width(scores):
            return
        scores, gradient = _as_logits(scores), _as_logits(gradient, negate=True)
        width = scores.shape[1]
        found = _from_gradient(scores, gradient, tolerance)
        self._softmax = _together(self._softmax, found.softmax)
        self._plain = _together(self._plain, found.plain)
        known = _usable(labels, len(scores), width)
        if known is None:
            known = found.labels
        counted = known >= 0
        picked = known[counted]
        answers = scores.argmax(axis=1)
        if self._rows is None:
            counts = [(name, np.int64, (width,)) for name in ("answers", "labels")]
            fields = [("steps", np.int64), *counts, ("right", np.int64), ("cross_entropies", np.float64)]
            self._rows = History(fields, KEPT, KEPT)
        entropy = -_log_softmax(scores)[counted, picked].mean() if picked.size else np.nan
        self._rows.append(
            (
                step,
                np.bincount(answers, minlength=width),
                np.bincount(picked, minlength=width),
                int((answers[counted] == picked).sum()),
                entropy,
            )
        )

    def _answered(self, step: int, answers: Array, labels: Array | None) -> None:
        width = self._num_outputs
        if not width or answers.max(initial=0) >= width:
            return  # before the first step, or of another output than the one that learns
        counts, known = self._evaluations.setdefault(step, (np.zeros(width, np.int64), np.zeros(width, np.int64)))
        counts += np.bincount(answers[answers >= 0], minlength=width)
        usable = _usable(labels, len(answers), width)
        if usable is not None:
            known += np.bincount(usable[usable >= 0], minlength=width)
        while len(self._evaluations) > EVALUATIONS:
            del self._evaluations[next(iter(self._evaluations))]

    def _same_width(self, scores: Array) -> bool:
        """Whether the output is as wide as the first that was seen, and finite."""
        width = max(2, scores.shape[1]) if scores.ndim == 2 else 2
        self._num_outputs = self._num_outputs or width
        return width == self._num_outputs and bool(np.isfinite(scores).all())


@dataclass(frozen=True)
class _Gradient:
    """What a gradient by the logits says of the loss: None where it says nothing.

    Attributes:
        softmax: whether it is that of a softmax: it adds up to 0 over the classes.
        plain: whether it is that of cross entropy with one label an example, all of which count the same.
        labels: integers (rows,), -1 where not known.
    """

    softmax: bool | None
    plain: bool | None
    labels: Array


def _from_gradient(scores: Array, gradient: Array, tolerance: float) -> _Gradient:
    """Hold a gradient (rows, classes) against the form that it has under cross entropy."""
    rows, width = scores.shape
    every = np.arange(rows)
    unknown = np.full(rows, -1)
    size = np.abs(gradient).sum(axis=1)
    there = np.isfinite(size) & (size > 0)
    lowest = gradient.argmin(axis=1)
    shares = np.exp(_log_softmax(scores))
    rest = 1 - shares[every, lowest]
    telling = there & (rest > 1 - SURE)
    if not telling.any():
        return _Gradient(None, None, unknown)
    if (np.abs(gradient.sum(axis=1)) > tolerance * size)[telling].any():
        return _Gradient(False, False, unknown)
    scale = -gradient[every, lowest] / np.where(telling, rest, 1)
    expected = scale[:, None] * (shares - np.eye(width)[lowest])
    hard = bool((np.abs(gradient - expected).sum(axis=1) <= 2 * tolerance * size)[telling].all())
    equal = bool(scale[telling].max() <= (1 + 5 * tolerance) * scale[telling].min())
    if width > 2:
        labels = np.where(there, lowest, -1) if hard else unknown
        return _Gradient(True, hard and equal, labels)
    # Any two numbers that add up to 0 are of that form: there only equal scales tell.
    if telling.sum() < FEWEST:
        return _Gradient(None, None, unknown)
    return _Gradient(equal, equal, np.where(there, lowest, -1) if equal else unknown)


def labels_in(kwargs: Mapping[str, Any]) -> Any:
    """Return what a model of Hugging Face's calls its labels, if it is called with them."""
    return kwargs.get("labels")


def _scores(output: Any) -> Tensor | None:
    """Return the logits (rows, classes) or (rows,) of an output; None if it holds no such thing."""
    if not isinstance(output, Tensor):
        output = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    if not isinstance(output, Tensor) or not output.is_floating_point() or output.ndim not in (1, 2):
        return None
    return output if output.numel() and (output.ndim == 1 or output.shape[1] <= MOST_CLASSES) else None


def _answers(scores: Tensor) -> Tensor:
    """Return the class (rows,) with the highest score, on the device; -1 where it is NaN or infinite."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        scores = scores.reshape(-1, 1)
        return torch.where(scores.isfinite(), scores > 0, -1).reshape(-1)
    highest, answers = scores.max(dim=1)
    return torch.where(highest.isfinite(), answers, -1)


def _together(before: bool | None, now: bool | None) -> bool | None:
    """Join two verdicts: what was once seen not to hold does not hold."""
    return before if now is None else now if before is None else before and now


def _copy(values: Tensor) -> Tensor:
    return values.detach()[:ROWS].clone()


def _label_copy(labels: Any, rows: int | None) -> Tensor | None:
    """Copy class labels (rows,); None if they are none."""
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.ndim not in (1, 2):
        return None
    if (labels.ndim == 2 and labels.shape[1] != 1) or (rows is not None and len(labels) != rows):
        return None
    return _copy(labels.reshape(-1))


def _usable(labels: Array | None, rows: int, width: int) -> Array | None:
    """Return labels with -1 for those to be ignored; None if they do not belong to these outputs."""
    if labels is None or len(labels) != rows or (labels >= width).any():
        return None
    return np.where(labels < 0, -1, labels).astype(np.int64)


def _as_logits(values: Array, negate: bool = False) -> Array:
    """Widen a single logit (rows,) or (rows, 1) to two, (rows, 2), and the gradient by it likewise."""
    values = values.astype(np.float64).reshape(len(values), -1)
    if values.shape[1] > 1:
        return values
    return np.hstack([-values if negate else np.zeros_like(values), values])


def _log_softmax(scores: Array) -> Array:
    shifted = scores - scores.max(axis=1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result
