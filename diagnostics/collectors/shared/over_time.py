"""What the looks over time of every framework share: when to look, and how to make text and histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from diagnostics.errors import typed_message
from diagnostics.facts.array import Array
from diagnostics.facts.over_time import QUANTILES, Histogram

NUMBERS = 8  # of an example that are shown; of a larger one, its shape and range
CHARACTERS = 200  # of one text
IGNORED = -100  # a target that PyTorch's cross entropy leaves out
SUM_TOLERANCE = 1e-3  # of probabilities computed in half precision

BINS = 32
VALUES = 2**16  # of a layer that are read, evenly spaced: the quantiles of more differ in the third digit
LAYERS = 64  # the first ones of a larger model: a page with more is not read
EXAMPLES = 8  # of the batch that are decoded; the loss is that of all
MAX_LOOKS = 64  # looks in a run: each is kept, and copies the model

Decode = Callable[[Any], object] | None


class CannotDecode(Exception):
    """What the user gave does not fit; the text says what it was."""


def decoded(decode: Decode, value: Any, name: str) -> str:
    """Return a text for one example, by the user's function if there is one.

    Args:
        decode: the user's function.
        value: what it takes; without a function an array, or a number.
        name: of the function, as the user knows it.

    Raises:
        CannotDecode: the function raised.
    """
    if decode is None:
        return _numbers(value) if isinstance(value, np.ndarray) else str(value)
    try:
        text = str(decode(value))
    except Exception as error:
        raise CannotDecode(f"{name} raised {typed_message(error)}") from None
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"


def stride_for(size: int) -> int:
    """Return which of a layer's values are read: every so many."""
    return -(-size // VALUES)


def histogram_of(parts: Sequence[Array], size: int) -> Histogram | None:
    """Count the values that were read of a layer.

    Args:
        parts: 1-D, of any float dtype.
        size: values that the layer has.

    Returns:
        None if no value is finite.
    """
    read = np.concatenate([part.astype(np.float64) for part in parts])
    finite = read[np.isfinite(read)]
    if not len(finite):
        return None
    low, high = float(finite.min()), float(finite.max())
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # all alike, as a bias before the first step
        width = 0.5 * max(abs(low), 1e-3)
        low, high = low - width, high + width
    counts, edges = np.histogram(finite, BINS, (low, high))
    return Histogram(
        edges=edges,
        counts=counts,
        quantiles=np.quantile(finite, QUANTILES),
        total=float(finite.sum()),
        squares=float(np.square(finite).sum()),
        not_finite=len(read) - len(finite),
        share=len(read) / size,
    )


def is_look_step(step: int) -> bool:
    """Whether a step is looked at where no steps are chosen: 0, 1, 2, 5, 10, 20, 50, …; 19 in a million."""
    return str(step).rstrip("0") in ("", "1", "2", "5")


def _numbers(row: Array) -> str:
    if row.ndim <= 1 and row.size <= NUMBERS:
        return ", ".join(f"{number:.4g}" for number in row.reshape(-1).tolist())
    if row.ndim == 1 and not _is_floating(row):
        return ", ".join(map(str, row[:NUMBERS].tolist())) + f", … ({len(row)})"
    shape = f"shape {tuple(row.shape)}"
    return f"{shape}, {row.min().item():.4g} to {row.max().item():.4g}" if row.size else f"{shape}, empty"


def classes_in(prediction: Array, targets: Array | None) -> int | None:
    """Return the axis of the classes in a prediction (examples, …); None if it is not one of classes."""
    if targets is None or _is_floating(targets) or targets.dtype == bool:
        return None
    if prediction.ndim != targets.ndim + 1:
        return None
    if prediction.shape[:-1] == targets.shape:
        return int(targets.ndim) if prediction.shape[-1] > 1 else None  # one value, of a binary classifier
    if prediction.shape[0] == targets.shape[0] and prediction.shape[2:] == targets.shape[1:]:
        return 1
    return None


def prediction_texts(
    prediction: Array, targets: Array | None, decode_target: Decode
) -> tuple[tuple[str, ...], tuple[bool | None, ...]]:
    """Return, by example, the text of the prediction, and whether it is the target.

    Args:
        prediction: float (examples, …).
        targets: (examples, …); None if there are none.
        decode_target: makes text of a class, an int, or of a sequence of them, int64 (positions,).

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
    shares = _probabilities(prediction).max(-1).tolist()
    names = [decoded(decode_target, number, "decode_target") for number in chosen.tolist()]
    return tuple(f"{name} ({share:.0%})" for name, share in zip(names, shares, strict=True)), right


def target_texts(targets: Array, decode_target: Decode) -> tuple[str, ...]:
    """Return, by example, the text of the target; positions that the loss ignores are left out.

    Raises:
        CannotDecode: `decode_target` raised.
    """
    if _is_floating(targets) or targets.dtype == bool:
        return tuple(decoded(None, row, "") for row in targets)
    if targets.ndim == 1:
        return tuple(decoded(decode_target, number, "decode_target") for number in targets.tolist())
    return tuple(decoded(decode_target, row[row != IGNORED], "decode_target") for row in targets)


def _probabilities(prediction: Array) -> Array:
    """Return probabilities (examples, classes), of logits or of what are probabilities already."""
    if bool((prediction >= 0).all()) and np.allclose(prediction.sum(-1), 1.0, atol=SUM_TOLERANCE):
        return prediction
    powers = np.exp(prediction - prediction.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _is_floating(values: Array) -> bool:
    return values.dtype.kind == "f"
