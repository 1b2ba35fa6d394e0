"""The losses that a PyTorch user may mean, for `loss_match` to choose from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from diagnostics.collectors.shared.loss_match import Candidate, Recognised, elementwise, entropy_floor, recognise
from diagnostics.facts.loss_contracts import LossKind, Reads, functions_for

IGNORE_INDEX = -100  # PyTorch's default, and what Hugging Face's collators write
REDUCTIONS = ("mean", "sum")
INDEXED = tuple(getattr(F, name) for name in functions_for("classes"))
ELEMENTWISE: dict[tuple[LossKind, Reads | None], Any] = {
    ("mean_squared_error", None): F.mse_loss,
    ("mean_absolute_error", None): F.l1_loss,
    ("binary_cross_entropy", "logits"): F.binary_cross_entropy_with_logits,
    ("binary_cross_entropy", "probabilities"): F.binary_cross_entropy,
}
REGRESSIONS = ("mean_squared_error", "mean_absolute_error")


def class_axis(prediction: Tensor, target: Tensor, likely: int = -1) -> int | None:
    """Return which axis of the prediction counts classes if the target holds class indices, else None.

    Where the shapes fit both ways, as with 9 classes for 9 words, `likely` decides: 1, as PyTorch's losses have
    it, or the last.
    """
    if target.is_floating_point() or target.dtype == torch.bool or prediction.ndim != target.ndim + 1:
        return None
    last = prediction.shape[:-1] == target.shape
    second = prediction.shape[:1] + prediction.shape[2:] == target.shape
    if not last and not second:
        return None
    axis = 1 if second and (likely == 1 or not last) else prediction.ndim - 1
    return axis if prediction.shape[axis] > 1 else None


def is_indexed(loss_fn: Any) -> bool:
    """Whether this loss takes class indices as its target, by its type."""
    return isinstance(loss_fn, nn.CrossEntropyLoss | nn.NLLLoss) or any(loss_fn is one for one in INDEXED)


def recognise_loss(
    value: float, prediction: Any, target: Any, loss_fn: Any = None, ignore_index: int = IGNORE_INDEX
) -> Recognised:
    """Find the loss that gives `value` for this prediction and target.

    Args:
        value: the loss that the user's code computed.
        prediction: tensor (n, ...): logits, probabilities or a regression output.
        target: tensor (n, ...): class indices, or values shaped as the prediction.
        loss_fn: the user's loss, if known; a weighted `nn.CrossEntropyLoss` is known by its type alone.
        ignore_index: label that cross entropy leaves out.
    """
    if not isinstance(prediction, Tensor) or not isinstance(target, Tensor):
        return Recognised()
    prediction, target = prediction.detach().float(), target.detach()
    if target.ndim == 0:
        prediction, target = prediction[None], target[None]
    axis = class_axis(
        prediction, target, likely=1 if isinstance(loss_fn, nn.CrossEntropyLoss | nn.NLLLoss) else -1
    )
    if axis is not None:
        return _classification(value, prediction.movedim(axis, 1), target, loss_fn, ignore_index)
    if isinstance(loss_fn, nn.SmoothL1Loss | nn.HuberLoss) or any(
        loss_fn is one for one in (F.smooth_l1_loss, F.huber_loss)
    ):
        return Recognised(broadcast=bool(_broadcast(prediction, target)))
    if target.is_floating_point() and prediction.numel() and target.numel():
        return recognise(value, _elementwise(prediction, target.float()))
    return Recognised()


def _classification(value: float, scores: Tensor, target: Tensor, loss_fn: Any, ignore: int) -> Recognised:
    classes = scores.shape[1]
    shifted = (scores[:, :, :-1], target[:, 1:]) if scores.ndim == 3 and target.shape[-1] > 1 else None
    candidates: list[Candidate] = []
    for given, labels in filter(None, ((scores, target), shifted)):
        kept = labels[labels != ignore]
        if not kept.numel() or kept.min() < 0 or kept.max() >= classes:
            continue
        floor = entropy_floor(kept.cpu().numpy(), classes, _smoothing(loss_fn))
        known = _by_type(loss_fn, floor, classes, kept.numel())
        if known is not None:
            return known
        told = loss_fn is F.cross_entropy or loss_fn is F.nll_loss or bool((kept != kept[0]).any())
        weights = False if told else None
        candidates += _indexed(given, labels, ignore, floor, weights, kept.numel())
    return recognise(value, candidates)


def unit_scale_loss(kind: LossKind, prediction: Tensor, target: Tensor) -> Tensor:
    """Compute a regression loss against targets scaled so that the best constant prediction costs 1."""
    target = target.detach().to(prediction.dtype)
    if kind == "mean_squared_error":
        centred = target - target.mean(0)
        return F.mse_loss(prediction.reshape(target.shape), centred / centred.square().mean().sqrt())
    centred = target - target.median(0).values
    return F.l1_loss(prediction.reshape(target.shape), centred / centred.abs().mean())


def _by_type(loss_fn: Any, floor: float, classes: int, count: int) -> Recognised | None:
    """Tell a loss by its type, which is surer than by its value."""
    if not isinstance(loss_fn, nn.CrossEntropyLoss | nn.NLLLoss):
        return None
    reads: Reads = "logits" if isinstance(loss_fn, nn.CrossEntropyLoss) else "log_probabilities"
    scale = count if loss_fn.reduction == "sum" else 1
    weights = None if loss_fn.weight is None else tuple(map(float, loss_fn.weight.detach().cpu()))
    return Recognised("cross_entropy", floor * scale, classes, weights is not None, reads, weights=weights)


def _indexed(
    scores: Tensor, labels: Tensor, ignore: int, floor: float, weights: bool | None, count: int
) -> Iterator[Candidate]:
    known = Recognised("cross_entropy", num_classes=scores.shape[1], class_weights=weights)
    for reduction, scale in zip(REDUCTIONS, (1, count), strict=True):

        def logits(how: str = reduction) -> float:
            return float(F.cross_entropy(scores, labels, ignore_index=ignore, reduction=how))

        def log_probabilities(how: str = reduction) -> float:
            return float(F.nll_loss(scores, labels, ignore_index=ignore, reduction=how))

        yield Candidate(logits, replace(known, floor=floor * scale, reads="logits"))
        yield Candidate(log_probabilities, replace(known, floor=floor * scale, reads="log_probabilities"))


def _elementwise(prediction: Tensor, target: Tensor) -> Iterator[Candidate]:
    broadcast = prediction.numel() != target.numel() or (
        prediction.shape != target.shape and prediction.ndim != target.ndim
    )
    values = target.cpu().numpy()
    # A loss that squeezes before it compares and one that broadcasts give different numbers: try both.
    pairs = [(prediction.reshape(target.shape), target, False)] if prediction.numel() == target.numel() else []
    if broadcast:
        pairs += _broadcast(prediction, target)
    for given, wanted, spread in pairs:
        for reduction, scale in zip(REDUCTIONS, (1, wanted.numel()), strict=True):

            def compute(
                kind: LossKind, reads: Reads | None, a: Tensor = given, b: Tensor = wanted, how: str = reduction
            ) -> float:
                return float(ELEMENTWISE[kind, reads](a, b, reduction=how))

            yield from elementwise(compute, values, broadcast=spread, scale=scale)


def _broadcast(prediction: Tensor, target: Tensor) -> list[tuple[Tensor, Tensor, bool]]:
    try:
        given, wanted = torch.broadcast_tensors(prediction, target)
    except RuntimeError:
        return []
    return [(given, wanted, True)] if given.numel() > max(prediction.numel(), target.numel()) else []


def ignored_label(loss_fn: Any) -> int:
    """Return the label that a loss leaves out; PyTorch's own where it does not say, or answers anything."""
    label = getattr(loss_fn, "ignore_index", None)
    return label if isinstance(label, int) else IGNORE_INDEX


def _smoothing(loss_fn: Any) -> float:
    share = getattr(loss_fn, "label_smoothing", None)
    return share if isinstance(share, float) else 0.0
