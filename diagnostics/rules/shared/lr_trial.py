"""Checks in a short trial whether the learning rate is too high or too low."""

from __future__ import annotations

import math
import statistics
from typing import Any

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.trials import TrialFacts

from .update_size import LARGE_UPDATE, LONG_RUN

BELOW = 0.9  # of the best constant prediction's loss; a run above it has not learned to distinguish the examples
BELOW_IN_TURNS = 0.7  # the same for several batches; one may be learned and the next not
WELL_BELOW = 0.5  # of the same: at the other rate, the batch is clearly learned
MIN_STEPS = 10  # a shorter run shows little; the collectors give 30

# Too high: the better rate must be much smaller, and the updates disproportionately large.
TIMES_SMALLER = 3.0

# Too low: extrapolated from the trial to a run longer than most.
TIMES_LARGER = 10.0
MOVED = 0.1  # of a weight, if every step has the same direction


def constant_baseline_loss(trial: TrialFacts, loss: LossFacts) -> float:
    """Return the loss of the best constant prediction, if the trial can be judged by it.

    Raises:
        NotApplicable: there is no such loss, a schedule changes the rate, or the trial was too short.
    """
    baseline = loss.constant_baseline_loss
    if baseline is None or baseline <= 0:
        raise NotApplicable("needs a loss whose best constant prediction is known and can be beaten")
    if trial.warms_up:
        raise NotApplicable(
            "needs a run that starts at its full learning rate, but this run begins with a warm-up"
        )
    if trial.warms_up is None:
        raise NotApplicable("needs a run that is known to have no learning-rate warm-up")
    if len(trial.losses) < MIN_STEPS and math.isfinite(trial.losses[-1]):
        raise NotApplicable(f"needs a trial run of at least {MIN_STEPS} steps")
    return baseline if trial.constant_baseline_loss is None else trial.constant_baseline_loss


def final_loss(losses: tuple[float, ...], batches: int) -> float:
    """Return the final loss of a run: the mean over the last pass through all its batches."""
    turn = losses[-batches:]
    return sum(turn) / len(turn)


def on_batches(trial: TrialFacts) -> str:
    """Describe what the trial trained on: `one batch`, `4 batches in turn`."""
    return "one batch" if trial.batches == 1 else f"{trial.batches} batches in turn"


def is_too_high(trial: TrialFacts, baseline: float) -> bool:
    """Return whether the run learned nothing with large updates while a much smaller rate learns the batch.

    Raises:
        NotApplicable: the loss was still falling when the run ended.
    """
    if not other_rate_learns(trial, baseline) or not trial.better_rate:
        return False
    if trial.better_rate > trial.learning_rate / TIMES_SMALLER * (1 + 1e-6):
        return False
    if largest_update(trial) < LARGE_UPDATE:
        return False
    if math.isfinite(trial.losses[-1]):  # otherwise it diverged, however low it was before
        below = BELOW if trial.batches == 1 else BELOW_IN_TURNS
        last = statistics.median(trial.losses[-(len(trial.losses) // 3) :])
        if _lowest(trial.losses, trial.batches) <= WELL_BELOW * baseline or last <= below * baseline:
            return False
    if leads_below(trial.losses, WELL_BELOW * baseline):
        raise NotApplicable("needs a longer trial run: the loss was still falling")
    return True


def is_too_low(trial: TrialFacts, baseline: float) -> bool:
    """Return whether a long run at this pace would learn nothing while a much larger rate learns at once."""
    if not other_rate_learns(trial, baseline) or not trial.better_rate:
        return False
    if trial.better_rate < trial.learning_rate * TIMES_LARGER * (1 - 1e-6):
        return False
    if not all(math.isfinite(value) for value in trial.losses):
        return False
    gained = (trial.losses[0] - min(trial.losses)) / max(1, len(trial.losses) - 1)
    return gained * LONG_RUN < trial.losses[0] and largest_update(trial) * LONG_RUN < MOVED


def leads_below(losses: tuple[float, ...], target: float) -> bool:
    """Return whether as many steps again, at the pace of the last two thirds, would reach `target`."""
    third = len(losses) // 3
    if not third or not math.isfinite(losses[-1]):
        return False
    middle, last = statistics.median(losses[third : 2 * third]), statistics.median(losses[2 * third :])
    return last - 3 * (middle - last) <= target


def largest_update(trial: TrialFacts) -> float:
    """Return the largest |update| / |weight| of the run; inf if one is not finite."""
    return max((r if math.isfinite(r) else math.inf for r in trial.update_ratios), default=0.0)


def evidence(trial: TrialFacts, baseline: float) -> dict[str, Any]:
    """Return the numbers by name, as evidence for a finding."""
    return {
        "learning_rate": trial.learning_rate,
        "first_loss": number(trial.losses[0]),
        "final_loss": number(final_loss(trial.losses, trial.batches)),
        "steps": len(trial.losses),
        "batches": trial.batches,
        "better_rate": trial.better_rate,
        "better_final_loss": number(final_loss(trial.better_losses, trial.batches)),
        "better_steps": len(trial.better_losses),
        "best_constant_loss": baseline,
        "largest_update_ratio": number(largest_update(trial)),
    }


def number(value: float) -> float | str:
    """Return a finite float unchanged and any other as text, since JSON has no NaN."""
    return value if math.isfinite(value) else str(value)


def fix(rate: float, model: ModelFacts | None, optimizer: OptimizerFacts | None) -> str:
    """Return the line of code that sets the rate."""
    name = optimizer.name if optimizer is not None else "Adam"
    if model is None:
        return f"set the learning rate to {rate:.3g}"
    if model.library == "keras":
        return f"optimizer=keras.optimizers.{name}(learning_rate={rate:.3g})"
    if model.arguments is not None or (model.library == "transformers" and model.computes_loss):
        return f"TrainingArguments(..., learning_rate={rate:.3g})"
    return f"torch.optim.{name}(model.parameters(), lr={rate:.3g})"


def other_rate_learns(trial: TrialFacts, baseline: float) -> bool:
    """Return whether the same optimizer learns the batch at another rate, well below the baseline."""
    lowest = _lowest(trial.better_losses, trial.batches)
    return bool(trial.better_losses) and lowest <= WELL_BELOW * baseline * (1 + 1e-6)


def _lowest(losses: tuple[float, ...], batches: int) -> float:
    """Return the lowest loss (with several batches, the lowest mean over one pass); inf if none is finite."""
    passes = (final_loss(losses[: step + 1], batches) for step in range(batches - 1, len(losses)))
    return min((value for value in passes if math.isfinite(value)), default=math.inf)
