"""Measures the updates of a watched run relative to the weights, and their learning rates.

Several rules share this evidence. `loss_curve` decides which of them reports, and explains the limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.array import Array
from diagnostics.facts.training import StepHistory, UpdateHistory

LARGE_UPDATE = 0.01  # of a weight, in one step: ten times the rule of thumb of 0.001
LARGE_FIRST = 0.1  # the same in the first steps; small networks learn well at 3%
FIRST_STEPS = 20
SHRUNK = 0.1  # of the first norm: what is left under a weight decay that outweighs the gradient
TINY_UPDATE = 1e-5  # the same: 10,000 steps, all in one direction, change the weights by a tenth
FASTEST = 5 / 6  # of the layers are slower than the median of the fastest third
LONG_RUN = 10_000  # steps: five epochs over 64,000 examples in batches of 32


def update_size(updates: UpdateHistory | None, since: int = 0, before: int | None = None) -> float | None:
    """Return how much a step changes a layer, |update| / |weight|: the median over layers, then over steps."""
    each = _update_sizes(updates, since, before)
    return float(np.median(each)) if each.size else None


def check_measured(updates: UpdateHistory) -> None:
    """Raise NotApplicable if no update is known, for example if several steps are taken at once."""
    if not _update_sizes(updates).size:
        raise NotApplicable("needs steps with the weights compared before and after")


def largest_update(updates: UpdateHistory) -> float:
    """Return the size of the largest update, as `large_updates` measures it; 0 if none is known."""
    return float(_update_sizes(_of_first_norms(updates)).max(initial=0.0))


def moved(steps: StepHistory, updates: UpdateHistory | None) -> float | None:
    """Return how far the run would have gone if all steps had one direction, in norms of the weights."""
    size = update_size(updates)
    return None if size is None else size * steps.total_steps


def large_updates(updates: UpdateHistory | None, since: int = 0) -> float | None:
    """Return the size of updates so large that they explain a loss that does not fall; None if they are not.

    Either those since a step, or the very first: these can inflate the weights so far that later updates are small
    relative to them. Weights that have shrunk, as under a strong weight decay, are no measure of an update: it is
    compared with their first norm, and the very first updates do not count.
    """
    size = update_size(_of_first_norms(updates), since)
    first = None if _have_shrunk(updates) else update_size(updates, 0, FIRST_STEPS)
    if first is not None and first >= LARGE_FIRST and (size is None or first > size):
        return first
    return size if size is not None and size >= LARGE_UPDATE else None


def _have_shrunk(updates: UpdateHistory | None) -> bool:
    """Return whether the median layer ended at a small part of its first norm."""
    if updates is None or not len(updates.steps):
        return False
    first, last = updates.weight_norms[0], updates.weight_norms[-1]
    known = first > 0  # also False for NaN
    return bool(known.any()) and float(np.median(last[known] / first[known])) < SHRUNK


def _of_first_norms(updates: UpdateHistory | None) -> UpdateHistory | None:
    """Return the updates relative to the first norm of each weight, where that has shrunk since."""
    if updates is None or not len(updates.steps):
        return updates
    norms = updates.weight_norms.astype(np.float64)
    first = np.fmax(norms, norms[0])
    shrunk = np.divide(norms, first, out=np.ones_like(norms), where=first > 0)
    return replace(updates, ratios=updates.ratios * shrunk)


def tiny_updates(updates: UpdateHistory) -> bool:
    """Return whether no update is large enough to matter in a long run; False if nothing changed at all.

    If a third of the layers moves, it is not the step size that holds the others back.
    """
    if not 0 < largest_update(updates) < TINY_UPDATE:
        return False
    fastest = _update_sizes(updates, of_layers=lambda ratios: np.quantile(ratios, FASTEST))
    return float(np.median(fastest)) < TINY_UPDATE


def fastest_moved(steps: StepHistory, updates: UpdateHistory | None) -> float | None:
    """Return how far the fastest third of the layers would have gone if all their steps had one direction."""
    fastest = _update_sizes(updates, of_layers=lambda ratios: np.quantile(ratios, FASTEST))
    return float(np.median(fastest)) * steps.total_steps if fastest.size else None


def warms_up(steps: StepHistory) -> bool:
    """Return whether the learning rate was still rising at the end."""
    rates = top_rates(steps)
    third = len(rates) // 3
    return bool(third) and bool(np.nanmax(rates[-third:]) > 1.05 * np.nanmax(rates[:-third]))


def top_rates(steps: StepHistory) -> Array:
    """Return the largest learning rate of all parameter groups at each step, float64 (n,); 0 if unknown."""
    rates = steps.learning_rates.reshape(len(steps.steps), -1)
    result: Array = np.nan_to_num(rates, nan=0.0).max(axis=1, initial=0.0)
    return result


def rate_until(steps: StepHistory, step: int) -> float:
    """Return the largest learning rate up to a step."""
    return float(top_rates(steps)[steps.steps <= step].max(initial=0.0))


def _update_sizes(
    updates: UpdateHistory | None,
    since: int = 0,
    before: int | None = None,
    of_layers: Callable[[Array], Any] = np.median,
) -> Array:
    if updates is None:
        return np.zeros(0)
    chosen = (updates.steps >= since) & ((before is None) | (updates.steps < (before or 0)))
    ratios = updates.ratios[chosen].astype(np.float64)
    finite = np.isfinite(ratios)
    return np.array([of_layers(row[there]) for row, there in zip(ratios, finite, strict=True) if there.any()])
