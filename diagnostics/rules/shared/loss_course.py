"""Whether a run has learned anything, as far as its loss can tell."""

from __future__ import annotations

import numpy as np

from diagnostics.facts.training import HistoryFacts

FELL = 0.9  # of the first losses; less than that can be the noise of the batches
FIRST = 10  # losses that stand for the beginning
ENOUGH = 40  # known losses


def has_fallen(history: HistoryFacts | None) -> bool | None:
    """Whether the median of the last quarter of the losses lies a tenth under the first, and under the first ten.

    Under both, since a first step that is too large makes the losses after it large, and those fall in any case.

    Returns:
        None if not known: no losses, or too few.
    """
    if history is None or history.losses is None or history.loss_known is None:
        return None
    losses = history.losses[history.loss_known]
    losses = losses[np.isfinite(losses)]
    if losses.size < ENOUGH:
        return None
    first = float(np.median(losses[:FIRST]))
    last = float(np.median(losses[-(losses.size // 4) :]))
    return all(start - last > (1 - FELL) * abs(start) for start in (first, float(losses[0])))
