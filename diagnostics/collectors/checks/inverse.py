"""Says how what came back from a round trip follows from what went in."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.checks import Pattern

from .differences import differs, numbers, pattern_of

CLOSE = 1e-3  # of the range of the values
CHANNELS = 4  # of an axis whose every index may be normalised by numbers of its own


def relation(back: Any, original: Any) -> str:
    """Describe what `decode` left undone, as a sentence; empty if no simple relation holds."""
    if isinstance(back, str) and isinstance(original, str):
        return _of_texts(back, original)
    got, expected = numbers(back), numbers(original)
    if got is None or expected is None or not got.size or not expected.size:
        return ""
    reach = float(np.ptp(expected[np.isfinite(expected)])) if np.isfinite(expected).any() else 0.0

    def close(one: Array, other: Array) -> bool:
        return one.shape == other.shape and not differs(one, other, CLOSE * reach).any()

    if got.shape == expected.shape and expected.dtype.kind in "iu" and np.abs(got - 1.0 * expected).max() <= 1:
        return (
            "The values are off by one at most: the conversion to integers cuts off what rounding has left. Round "
            "first: (x * 255).round().to(torch.uint8)."
        )
    if (text := _cut_off(got, expected)) or (text := _of_pattern(pattern_of(got, expected, close))):
        return text
    if got.shape == expected.shape:
        return _affine(got, expected, reach)
    return ""


def _of_texts(back: str, original: str) -> str:
    if back.lower() == original.lower():
        return "Only upper and lower case differ: the tokenizer lower-cases, which is not undone."
    if back.split() == original.split():
        return "Only the spaces differ: encode or decode joins words otherwise."
    if original in back:
        before, _, after = back.partition(original)
        added = " and ".join(repr(part.strip()) for part in (before, after) if part.strip())
        return f"decode adds {added}: leave special tokens out (skip_special_tokens=True)."
    if original.startswith(back) and back:
        return f"The text is cut off after {len(back)} of {len(original)} characters: encode truncates."
    if any(mark in back and mark not in original for mark in ("[UNK]", "<unk>", "\N{REPLACEMENT CHARACTER}")):
        return "Some words come back as unknown: the vocabulary lacks them."
    return ""


def _cut_off(got: Array, expected: Array) -> str:
    if got.ndim != 1 or expected.ndim != 1 or got.shape == expected.shape:
        return ""
    shorter = min(len(got), len(expected))
    if (got[:shorter] != expected[:shorter]).any():
        return ""
    if len(got) < len(expected):
        return f"What comes back ends after {shorter} of {len(expected)}: encode truncates."
    return f"What comes back has {len(got) - shorter} more at the end: decode does not remove the padding."


def _of_pattern(found: Pattern | None) -> str:
    match found:
        case Pattern("swapped axes", axes):
            return (
                f"What comes back is the original with its axes in the order {axes}: height, width and channels "
                "are not put back. Use permute or transpose in decode."
            )
        case Pattern("refilled"):
            return (
                "What comes back holds the original's numbers in another order: reshape or view was used where "
                "axes were to be exchanged. Use permute or transpose."
            )
        case Pattern("flipped", axes):
            return f"What comes back is reversed along axis {axes[0]}: RGB and BGR, or an image turned over."
        case Pattern("scaled", _, number):
            return f"What comes back is {number:.6g} times the original: decode does not undo the scaling."
    return ""


def _affine(got: Array, expected: Array, reach: float) -> str:
    """Look for ``back = factor * original + offset``, the same everywhere or for each channel."""
    if reach == 0:
        return ""
    if (fit := _fit(got, expected, reach)) is not None:
        return (
            f"What comes back is {fit[0]:.4g} times the original {'+' if fit[1] >= 0 else '-'} {abs(fit[1]):.4g}: "
            "decode does not undo the normalisation. Invert (x - mean) / std by y * std + mean."
        )
    for axis, size in enumerate(got.shape):
        if 1 < size <= CHANNELS:
            pairs = [_fit(np.take(got, n, axis), np.take(expected, n, axis), reach) for n in range(size)]
            fits = [pair for pair in pairs if pair is not None]
            if len(fits) == size:
                seen = ", ".join(f"{factor:.4g}x{offset:+.4g}" for factor, offset in fits)
                return (
                    f"Along axis {axis} each channel comes back with a factor and an offset of its own ({seen}): "
                    "decode does not undo the normalisation, or with the numbers in another order."
                )
    low, high = got.min(), got.max()
    inside = (got > low) & (got < high)
    if inside.any() and not differs(got[inside], expected[inside], CLOSE * reach).any():
        return f"Values outside {low:.4g} to {high:.4g} are clipped, and do not come back."
    return ""


def _fit(got: Array, expected: Array, reach: float) -> tuple[float, float] | None:
    one, other = got.ravel().astype(np.float64), expected.ravel().astype(np.float64)
    if len(one) < 3 or np.ptp(other) == 0 or not (np.isfinite(one).all() and np.isfinite(other).all()):
        return None
    factor, offset = np.polyfit(other, one, 1)
    if abs(factor) < CLOSE or np.abs(factor * other + offset - one).max() > CLOSE * reach * abs(factor):
        return None
    return float(factor), float(offset)
