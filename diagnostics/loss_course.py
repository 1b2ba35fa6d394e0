"""Whether a run has learned anything, as far as its loss can tell."""

from __future__ import annotations

import numpy as np

from .watch_facts import HistoryFacts

FELL = 0.9  # of the first losses; less than that can be the noise of the batches
FIRST = 10  # losses that stand for the beginning
ENOUGH = 40  # known losses


def has_fallen(history: HistoryFacts | None) -> bool | None:
    """Whether the loss of the last quarter lies under that of the first steps by a tenth, both as medians.

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
    return first - last > (1 - FELL) * abs(first)
