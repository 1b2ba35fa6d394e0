"""Draws the curves of experiments, with and without a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from diagnostics.text.visible import escaped

from . import charts

if TYPE_CHECKING:
    from diagnostics.report.changes import ChangesReport


def curves(losses: Mapping[str, Sequence[float]]) -> str:
    """Draw the loss of an unchanged copy as a line, and that of a changed one as dots.

    Args:
        losses: by what was changed, before each step; the unchanged copy comes first.
    """
    (unchanged, line), *others = ((name, np.asarray(values, float)) for name, values in losses.items())
    axis = charts.Axis(0, max(1, len(line) - 1))
    dots = [charts.Dots(name, np.arange(len(values)), values) for name, values in others]
    return charts.line(
        f"Loss before each step, {unchanged}", axis, np.arange(len(line)), line, dots=dots[0] if dots else None
    )


def framed(result: ChangesReport) -> str:
    """Render a result for a notebook, in a frame."""
    from .overfit import framed as in_frame
    from .page import document, table_of

    drawn = ""
    if result.experiments is not None and result.cures:
        drawn = curves(
            {"unchanged": result.experiments.unchanged[0].losses, result.cures[0].phrase: result.cures[0].losses}
        )
    tone = "good" if result.cures else "note"
    table = table_of(("change", "loss", ""), result.rows(), "experiments", wide=2)
    body = f'<h1>Changes tried</h1><p class="verdict {tone}">{escaped(result.verdict())}</p>{drawn}{table}'
    return in_frame(document("Changes tried", body))
