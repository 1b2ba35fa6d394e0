"""Makes text of examples, of their targets, and of what a model predicts for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from diagnostics.errors import typed_message

NUMBERS = 8  # of an example that are shown; of a larger one, its shape and range
CHARACTERS = 200  # of one text
IGNORED = -100  # a target that PyTorch's cross entropy leaves out


class CannotDecode(Exception):
    """What the user gave does not fit; the text says what it was."""


def decoded(decode: Callable[[Any], object] | None, value: Any, name: str) -> str:
    """Return a text for one example, by the user's function if there is one.

    Raises:
        CannotDecode: the function raised.
    """
    if decode is None:
        return _numbers(value) if isinstance(value, Tensor) else str(value)
    try:
        text = str(decode(value))
    except Exception as error:
        raise CannotDecode(f"{name} raised {typed_message(error)}") from None
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"


def _numbers(row: Tensor) -> str:
    if row.ndim <= 1 and row.numel() <= NUMBERS:
        return ", ".join(f"{number:.4g}" for number in row.reshape(-1).tolist())
    if row.ndim == 1 and not row.is_floating_point():
        return ", ".join(map(str, row[:NUMBERS].tolist())) + f", … ({len(row)})"
    shape = f"shape {tuple(row.shape)}"
    return f"{shape}, {row.min().item():.4g} to {row.max().item():.4g}" if row.numel() else f"{shape}, empty"


def classes_in(prediction: Tensor, targets: Tensor | None) -> int | None:
    """Return the axis of the classes in a prediction (examples, …); None if it is not one of classes."""
    if targets is None or targets.is_floating_point() or targets.dtype is torch.bool:
        return None
    if prediction.ndim != targets.ndim + 1:
        return None
    if prediction.shape[:-1] == targets.shape:
        return int(targets.ndim)
    if prediction.shape[0] == targets.shape[0] and prediction.shape[2:] == targets.shape[1:]:
        return 1
    return None


def prediction_texts(
    prediction: Tensor, targets: Tensor | None, decode_target: Callable[[Any], object] | None
) -> tuple[tuple[str, ...], tuple[bool | None, ...]]:
    """Return, by example, the text of the prediction, and whether it is the target.

    Args:
        prediction: float (examples, …), on the CPU.
        targets: (examples, …), on the CPU; None if there are none.
        decode_target: the user's function.

    Raises:
        CannotDecode: `decode_target` raised.
    """
    axis = classes_in(prediction, targets)
    if axis is None or targets is None:
        return tuple(decoded(None, row, "") for row in prediction), (None,) * len(prediction)
    chosen = prediction.argmax(axis)
    counted = targets != IGNORED
    agree = (chosen == targets) | ~counted
    right = tuple(bool(row.all()) if bool(some.any()) else None for row, some in zip(agree, counted, strict=True))
    if targets.ndim > 1:
        return tuple(decoded(decode_target, row, "decode_target") for row in chosen), right
    shares = _probabilities(prediction).max(-1).values.tolist()
    names = [decoded(decode_target, number, "decode_target") for number in chosen.tolist()]
    return tuple(f"{name} ({share:.0%})" for name, share in zip(names, shares, strict=True)), right


def target_texts(targets: Tensor, decode_target: Callable[[Any], object] | None) -> tuple[str, ...]:
    """Return, by example, the text of the target; positions that the loss ignores are left out.

    Raises:
        CannotDecode: `decode_target` raised.
    """
    if targets.is_floating_point() or targets.dtype is torch.bool:
        return tuple(decoded(None, row, "") for row in targets)
    if targets.ndim == 1:
        return tuple(decoded(decode_target, number, "decode_target") for number in targets.tolist())
    return tuple(decoded(decode_target, row[row != IGNORED], "decode_target") for row in targets)


def _probabilities(prediction: Tensor) -> Tensor:
    """Return probabilities (examples, classes), of logits or of what are probabilities already."""
    sums = prediction.sum(-1)
    if bool((prediction >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-3):
        return prediction
    return prediction.softmax(-1)
