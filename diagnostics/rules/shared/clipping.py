"""Judges how much of each gradient is clipped away."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.facts.calls import ClipFacts

CUT_DOWN = 100.0  # times the clipping limit, which is usually 1 for gradients with a norm of 0.1 to 10


def cut_down(clips: ClipFacts | None) -> tuple[str, tuple[str, ...]]:
    """Describe how much of the typical gradient is clipped away, and how to keep it; empty if it is little."""
    if clips is None or not clips.cut_from.size:
        return "", ()
    found = float(np.median(clips.cut_from))
    if not found >= CUT_DOWN * clips.cut_to:
        return "", ()
    return (
        f"clip_grad_norm_ cuts the gradient norm from a median of {found:.3g} to {clips.cut_to:.3g}, so "
        f"each step is 1/{found / clips.cut_to:,.0f} of its unclipped size. ",
        (f"clip_grad_norm_(parameters, {10 ** math.ceil(math.log10(found)):g})  # clips only outliers",),
    )


def always_cut_down(clips: ClipFacts | None) -> bool:
    """Return whether no recorded gradient was spared."""
    return (
        clips is not None and bool(clips.cut_from.size) and bool(clips.cut_from.min() >= CUT_DOWN * clips.cut_to)
    )
