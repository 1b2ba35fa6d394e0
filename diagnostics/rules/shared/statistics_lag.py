"""Detects batch norm statistics that have not caught up with the weights."""

from __future__ import annotations

import math

from diagnostics.facts.dependence import DependenceFacts, StatisticsFacts
from diagnostics.rules.shared.whole_run import STEPS

ERRORS = 2.0  # standard errors above the share of the most frequent class: the model has learned its rows
HALF = 0.5  # of the gain of batch statistics over that class; with less, the running statistics lag

PATIENCE = {
    "torch": (
        "train longer before the evaluation: the running statistics need about 10 / momentum steps",
        "use a larger momentum for short runs: nn.BatchNorm2d(channels, momentum=0.3)",
    ),
    "keras": (
        "train longer before evaluating: the moving statistics need about 10 / (1 - momentum) steps to converge",
        "use a smaller momentum for short runs: keras.layers.BatchNormalization(momentum=0.7)",
    ),
}


def is_lagging(seen: StatisticsFacts) -> bool:
    """Return whether the model knows rows with the statistics of their batch, but not with the running ones."""
    chance = seen.most_frequent / seen.rows
    own, running = seen.right_with_own / seen.rows - chance, seen.right_with_running / seen.rows - chance
    return own > ERRORS * math.sqrt(chance * (1 - chance) / seen.rows) and running <= HALF * own


def lag(has_batch_norm: bool, dependence: DependenceFacts | None, steps: int) -> str | None:
    """Describe running statistics that lag after so many steps; None if they do not, or the run was long."""
    seen = None if dependence is None or not dependence.trained else dependence.statistics
    if steps >= STEPS or (seen is None and not has_batch_norm):
        return None
    if seen is None:
        return (
            f"The evaluation uses the running statistics of batch norm, and {steps:,} steps may be too few for "
            "these statistics to catch up with the weights."
        )
    if not is_lagging(seen):
        return None
    return (
        f"The running statistics of batch norm lag behind the weights after {steps:,} steps. On {seen.rows:,} "
        "rows of the first training batch, evaluated with the same weights, "
        f"{seen.right_with_running / seen.rows:.0%} of the predictions are correct with the running "
        f"statistics, but {seen.right_with_own / seen.rows:.0%} with the batch's own statistics."
    )
