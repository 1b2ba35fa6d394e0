"""Detects batch norm statistics that have not caught up with the weights after a few steps."""

from __future__ import annotations

import math

from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.layers import BatchNormFacts
from diagnostics.rules.shared.whole_run import STEPS

ERRORS = 2.0  # standard errors above the share of the most frequent class: the model has learned its rows
HALF = 0.5  # of the gain of batch statistics over that class; with less, the running statistics lag

PATIENCE = (
    "train longer before the evaluation: the running statistics need about 10 / momentum steps",
    "use a larger momentum for short runs: nn.BatchNorm2d(channels, momentum=0.3)",
)


def lag(norms: BatchNormFacts | None, dependence: DependenceFacts | None, steps: int) -> str | None:
    """Describe running statistics that lag after so many steps; None if they do not, or the run was long."""
    if norms is None or steps >= STEPS:
        return None
    seen = None if dependence is None or not dependence.trained else dependence.statistics
    if seen is None:
        return (
            f"The evaluation uses the running statistics of batch norm, and {steps:,} steps may be too few for "
            "these statistics to catch up with the weights."
        )
    chance = seen.most_frequent / seen.rows
    own, running = seen.right_with_own / seen.rows - chance, seen.right_with_running / seen.rows - chance
    if own <= ERRORS * math.sqrt(chance * (1 - chance) / seen.rows) or running > HALF * own:
        return None
    return (
        f"The batch norm running statistics lag behind the weights after {steps:,} steps: on {seen.rows:,} "
        "rows of the first training batch, in evaluation mode and with the same weights, "
        f"{seen.right_with_running / seen.rows:.0%} of the predictions are correct with the running "
        f"statistics, but {seen.right_with_own / seen.rows:.0%} with the batch's own statistics."
    )
