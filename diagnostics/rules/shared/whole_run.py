"""Measures how a whole run ended, for rules that compare it with a constant prediction."""

from __future__ import annotations

import math

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.array import Array
from diagnostics.facts.course import Verdicts
from diagnostics.facts.training import LossHistory, StepHistory

STEPS = 100  # of a run that is judged after its end
SHORT = 50  # steps, from which on it is said that a run has not learned yet
NO_BETTER = 0.97  # of the constant prediction's loss; a mean over this many batches hardly varies by more


def check_whole(steps: StepHistory, verdicts: Verdicts) -> None:
    """Check that a run is over, was long enough, and did not take turns with another model's training.

    Raises:
        NotApplicable: it is not.
    """
    if steps.total_steps < STEPS or not verdicts.complete or not verdicts.trained_alone:
        raise NotApplicable(f"needs a complete run of at least {STEPS} steps that trains only this model")


def last_third(losses: LossHistory, total_steps: int, further: int = 0) -> Array:
    """Return the losses of the last third of a run, or of the third `further` before it: float64 (n,)."""
    start, end = total_steps * (2 - further) / 3, total_steps * (3 - further) / 3
    return losses.values[(losses.steps >= start) & (losses.steps < end)]


def late_loss(losses: LossHistory, total_steps: int) -> float:
    """Return the mean loss over the last third of a run; NaN if none is known."""
    last = last_third(losses, total_steps)
    return float(last.mean()) if last.size else math.nan


def ending(losses: LossHistory) -> float:
    """Return the mean of the last third of the losses, at least one, after the run."""
    return float(losses.values[-max(1, len(losses.values) // 3) :].mean())
