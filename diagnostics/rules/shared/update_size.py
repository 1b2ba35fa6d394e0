"""How large the steps of a watched run are, against the weights, and at which learning rates they were made.

Evidence that several rules share; `trajectory` says which of them speaks, and where the limits come from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diagnostics.facts.pipeline import Array
from diagnostics.facts.training import HistoryFacts

LARGE_UPDATE = 0.01  # of a layer's weights, in one step: ten times the 0.001 of the rule of thumb
LARGE_FIRST = 0.1  # the same in the first steps; small networks learn well at 3%
FIRST_STEPS = 20
TINY_UPDATE = 1e-5  # the same: 10,000 steps, all the same way, change the weights by a tenth
FASTEST = 5 / 6  # of the layers are slower than the median of the fastest third
LONG_RUN = 10_000  # steps


def update_size(history: HistoryFacts, since: int = 0, before: int | None = None) -> float | None:
    """Return how much a step changes a layer, |update| / |weight|: the median over layers, then over steps."""
    each = _update_sizes(history, since, before)
    return None if each is None or not each.size else float(np.median(each))


def largest_update(history: HistoryFacts) -> float | None:
    """Return the same for the step that changed most."""
    each = _update_sizes(history, 0)
    return None if each is None or not each.size else float(each.max())


def moved(history: HistoryFacts) -> float | None:
    """Return how far the run would have gone had each step gone the same way, in sizes of the weights."""
    size = update_size(history)
    return None if size is None else size * history.total_steps


def large_updates(history: HistoryFacts, since: int = 0) -> float | None:
    """Return the size of steps so large that they explain a loss that does not fall; None if they are not.

    Either those since a step, or the very first: these can blow the weights up so far that later steps are small
    beside them.
    """
    size = update_size(history, since)
    first = update_size(history, 0, FIRST_STEPS)
    if first is not None and first >= LARGE_FIRST and (size is None or first > size):
        return first
    return size if size is not None and size >= LARGE_UPDATE else None


def tiny_updates(history: HistoryFacts) -> bool:
    """Whether not one step was large enough to get anywhere in a long run; False if nothing at all changed.

    Where a third of the layers gets somewhere, it is not the size of the steps that holds the others back.
    """
    largest = largest_update(history)
    if largest is None or not 0 < largest < TINY_UPDATE:
        return False
    fastest = _update_sizes(history, 0, of_layers=lambda ratios: np.quantile(ratios, FASTEST))
    return fastest is not None and float(np.median(fastest)) < TINY_UPDATE


def warms_up(history: HistoryFacts) -> bool:
    """Whether the learning rate was still rising at the end."""
    rates = top_rates(history)
    third = len(rates) // 3
    return bool(third) and bool(np.nanmax(rates[-third:]) > 1.05 * np.nanmax(rates[:-third]))


def top_rates(history: HistoryFacts) -> Array:
    """Return float64 (n,), the largest learning rate over parameter groups at each step; 0 if none is known."""
    rates = history.learning_rates.reshape(len(history.steps), -1)
    result: Array = np.nan_to_num(rates, nan=0.0).max(axis=1, initial=0.0)
    return result


def rate_until(history: HistoryFacts, step: int) -> float:
    """Return the largest learning rate up to a step."""
    return float(top_rates(history)[history.steps <= step].max(initial=0.0))


def _update_sizes(
    history: HistoryFacts, since: int, before: int | None = None, of_layers: Callable[[Array], Any] = np.median
) -> Array | None:
    ratios = history.update_ratios
    if ratios is None or history.sampled_steps is None:
        return None
    steps = history.sampled_steps
    ratios = ratios[(steps >= since) & ((before is None) | (steps < (before or 0)))].astype(np.float64)
    finite = np.isfinite(ratios)
    return np.array([of_layers(row[there]) for row, there in zip(ratios, finite, strict=True) if there.any()])
