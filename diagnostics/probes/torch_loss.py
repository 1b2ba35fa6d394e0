"""Recognises which loss a number is, by computing it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from diagnostics.facts import LossKind

AGREEMENT = 1e-3  # relative; float32 sums in another order differ by far less, two different losses by far more


@dataclass(frozen=True)
class Recognised:
    """Which loss it is, and the least that one constant answer could reach on this batch."""

    kind: LossKind
    floor: float | None = None
    num_classes: int | None = None
    class_weights: bool = False


def class_axis(prediction: Tensor, target: Tensor) -> int | None:
    """Return which axis of the prediction counts classes if the target holds class indices, else None."""
    if target.is_floating_point() or target.dtype == torch.bool or prediction.ndim != target.ndim + 1:
        return None
    if prediction.shape[:-1] == target.shape:
        axis = prediction.ndim - 1
    elif prediction.shape[:1] + prediction.shape[2:] == target.shape:
        axis = 1
    else:
        return None
    return axis if prediction.shape[axis] > 1 else None


def recognise(
    value: float, prediction: Any, target: Any, loss_fn: Any = None, ignore_index: int = -100
) -> Recognised:
    """Find the loss that gives `value` for this prediction and target.

    Args:
        value: the loss that the user's code computed.
        prediction: tensor (n, ...): logits or a regression output.
        target: tensor (n, ...): class indices, or values shaped as the prediction.
        loss_fn: the user's loss, if known; a weighted `nn.CrossEntropyLoss` is known by its type alone.
        ignore_index: label that cross entropy leaves out.
    """
    if not isinstance(prediction, Tensor) or not isinstance(target, Tensor):
        return Recognised("other")
    prediction, target = prediction.detach().float(), target.detach()
    axis = class_axis(prediction, target)
    if axis is not None:
        return _classification(value, prediction.movedim(axis, 1), target, loss_fn, ignore_index)
    if target.is_floating_point() and prediction.numel() == target.numel():
        return _elementwise(value, prediction.reshape(target.shape), target.float())
    return Recognised("other")


def _classification(value: float, logits: Tensor, target: Tensor, loss_fn: Any, ignore_index: int) -> Recognised:
    known = isinstance(loss_fn, nn.CrossEntropyLoss | nn.NLLLoss)
    weighted = known and loss_fn.weight is not None
    classes = logits.shape[1]
    shifted = (logits[:, :, :-1], target[:, 1:]) if logits.ndim == 3 and target.shape[-1] > 1 else None
    for scores, labels in filter(None, ((logits, target), shifted)):
        kept = labels[labels != ignore_index]
        if not kept.numel() or kept.min() < 0 or kept.max() >= classes:
            continue
        for reduction, count in (("mean", 1), ("sum", kept.numel())):
            again = F.cross_entropy(scores, labels, ignore_index=ignore_index, reduction=reduction).item()
            if _agree(value, again) or (known and loss_fn.reduction == reduction):
                smoothing = float(getattr(loss_fn, "label_smoothing", 0.0))
                share = torch.bincount(kept.flatten(), minlength=classes).double() / kept.numel()
                share = (1 - smoothing) * share + smoothing / classes
                floor = float(-torch.xlogy(share, share).sum()) * count
                return Recognised("cross_entropy", floor, classes, weighted)
    return Recognised("other")


def _elementwise(value: float, prediction: Tensor, target: Tensor) -> Recognised:
    rows = target.reshape(target.shape[0], -1)
    candidates: list[tuple[LossKind, Callable[..., Tensor], Tensor]] = [
        ("mean_squared_error", F.mse_loss, rows.var(0, unbiased=False).mean()),
        ("mean_absolute_error", F.l1_loss, (rows - rows.median(0).values).abs().mean()),
    ]
    if target.min() >= 0 and target.max() <= 1:
        share = rows.mean(0).clamp(1e-12, 1 - 1e-12).double()
        entropy = -(share * share.log() + (1 - share) * (1 - share).log()).mean()
        candidates.append(("binary_cross_entropy", F.binary_cross_entropy_with_logits, entropy))
        if prediction.min() >= 0 and prediction.max() <= 1:
            candidates.append(("binary_cross_entropy", F.binary_cross_entropy, entropy))
    for kind, loss, floor in candidates:
        for reduction, count in (("mean", 1), ("sum", target.numel())):
            if _agree(value, loss(prediction, target, reduction=reduction).item()):
                return Recognised(kind, float(floor) * count)
    return Recognised("other")


def _agree(value: float, again: float) -> bool:
    return abs(value - again) <= AGREEMENT * max(abs(again), 1e-6)
