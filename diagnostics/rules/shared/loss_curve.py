"""Classifies the loss curve of a run, evidence that several rules share, and decides which of them reports it.

A bad curve has one cause and is reported once. If the updates are large enough to explain it,
`learning-rate-too-high` reports it; if they are so small that nothing changes, `learning-rate-too-low`; otherwise
the rule named after the curve: `loss-divergence`, `loss-plateau`, `loss-oscillation`, and finally
`constant-predictions`. None of them reports a run whose gradients are never zeroed, which explains any such curve.

The limits are our choice. We tuned them on simulated healthy losses of many shapes and on the healthy programs in
the tests, so that none of them raises an alarm.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diagnostics.engine.evaluate import needs
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.array import Array
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory

from .update_size import large_updates, warms_up

FEWEST_LOSSES = 40
FIRST = 10  # losses that represent the start
SAMPLES = 8  # sampled steps; fewer reveal little about a run
EXAMPLES = 100  # with known labels, to estimate the class frequencies
PURE = 0.95  # of a batch in one class; such batches reveal nothing about the chance level
LEARNED = 0.9  # of the chance level, or of the first losses; a loss below it has improved
AT_CHANCE = (0.95, 1.05)  # of the chance level
FLAT = 0.02  # of the chance level: the largest decrease between halves that still counts as none
FAR_ABOVE_CHANCE = 2.0  # times the chance level: far worse than an untrained model
ROSE = 1.5  # times the initial level, and times the lowest
SOARED = 100.0  # the same if the chance level is unknown; some healthy losses grow tenfold
SOARED_TO_NAN = 1000.0  # the same if the next loss was not finite
WEIGHTS_GREW = 3.0  # times
REPEATS = 100  # occurrences of the same batch
TURNS = 0.9  # share of the second half in which the loss changes direction; two thirds for pure noise
SWINGS = 0.5  # of the mean loss on that batch: from the lowest tenth to the highest


@dataclass(frozen=True)
class LossCurve:
    """Where a bad loss curve starts, bottoms out and ends.

    Attributes:
        began: initial level.
        lowest: lowest level.
        ended: final level; for an oscillating loss, the mean.
        since: first step of the final level.
        until: last step of the final level.
        chance: loss of a constant prediction, in nats; None if not known.
        swings: 10th and 90th percentiles of an oscillating loss; None otherwise.
    """

    began: float
    lowest: float
    ended: float
    since: int
    until: int
    chance: float | None = None
    swings: tuple[float, float] | None = None


def diverged(
    steps: StepHistory, losses: LossHistory | None, updates: UpdateHistory | None, answers: PredictionFacts | None
) -> LossCurve | None:
    """Return the curve of a loss that rose and did not recover; None for any other.

    Raises:
        NotApplicable: there are too few losses to judge.
    """
    if _explained(steps):
        return None
    if answers is not None and answers.plain_loss:
        with contextlib.suppress(NotApplicable):
            return _far_above_chance(answers)
    if losses is None:
        raise NotApplicable(needs(LossHistory))
    return _soared(losses, updates)


def stuck(run: StepHistory, answers: PredictionFacts | None, fewest: int) -> LossCurve | None:
    """Return the curve of a loss that stays at or above the chance level; None for any other.

    Args:
        run: its steps.
        answers: of the classifier.
        fewest: minimum number of steps of the run.

    Raises:
        NotApplicable: the chance level is not known, or the run is too short.
    """
    if answers is None or not answers.plain_loss:
        raise NotApplicable("needs a classifier whose loss is known to be an unweighted cross-entropy loss")
    if run.total_steps < fewest:
        raise NotApplicable(f"needs {fewest} steps")
    if warms_up(run):
        raise NotApplicable("needs a run that is past its learning-rate warm-up")
    chance = chance_level(answers)
    if _explained(run):
        return None
    known = np.isfinite(answers.cross_entropies)
    steps, losses = answers.steps[known], answers.cross_entropies[known]
    weights = answers.labels.sum(axis=1)[known]
    late = steps >= steps[-1] / 3
    if late.sum() < SAMPLES:
        raise NotApplicable(f"needs the predictions of {SAMPLES} steps")
    quarters = [
        float(np.average(values, weights=counts))
        for values, counts in zip(np.array_split(losses[late], 4), np.array_split(weights[late], 4), strict=True)
    ]
    if min(quarters) < AT_CHANCE[0] * chance or _ever_below(losses, LEARNED * chance):
        return None
    if sum(quarters[:2]) - sum(quarters[2:]) > 2 * FLAT * chance:
        return None  # slow, but decreasing
    if _discriminates(answers, late, known):
        return None
    return LossCurve(
        began=float(losses[0]),
        lowest=min(quarters),
        ended=float(np.average(losses[late], weights=weights[late])),
        since=int(steps[late][0]),
        until=int(steps[-1]),
        chance=chance,
    )


def oscillates(run: StepHistory, losses: LossHistory) -> LossCurve | None:
    """Return the curve of a loss that oscillates on one repeated batch and has not fallen; None for any other.

    Across different batches a loss may vary as much because the batches differ.

    Raises:
        NotApplicable: no batch occurred often enough.
    """
    steps, values = finite_losses(losses)
    prints = run.batch_fingerprints[np.isin(run.steps, steps)]
    batches, counts = np.unique(prints[prints != 0], return_counts=True)
    if not batches.size or counts.max() < REPEATS:
        raise NotApplicable(f"needs a batch that was used {REPEATS} times")
    if _explained(run):
        return None
    same = prints == batches[counts.argmax()]
    of_batch, at = values[same], steps[same]
    half = of_batch[len(of_batch) // 2 :]
    began, ended = float(of_batch[:6].mean()), float(half.mean())
    low, high = (float(value) for value in np.quantile(half, (0.1, 0.9)))
    if ended < LEARNED * began or high - low < SWINGS * abs(ended):
        return None
    if (np.diff(np.sign(np.diff(half))) != 0).mean() < TURNS:
        return None
    since = int(at[len(of_batch) // 2])
    return LossCurve(began, float(of_batch.min()), ended, since, int(at[-1]), None, (low, high))


def worst_curve(
    steps: StepHistory,
    losses: LossHistory | None,
    updates: UpdateHistory | None,
    answers: PredictionFacts | None,
    fewest: int,
) -> tuple[str, LossCurve] | None:
    """Return the first of diverged, stuck and oscillates that applies, and its name; None if none does.

    Raises:
        NotApplicable: none of the three could be judged.
    """
    reasons = []
    looks: dict[str, Callable[[], LossCurve | None]] = {
        "diverged": lambda: diverged(steps, losses, updates, answers),
        "stuck": lambda: stuck(steps, answers, fewest),
    }
    if losses is not None:
        looks["oscillates"] = lambda: oscillates(steps, losses)
    for name, look in looks.items():
        try:
            curve = look()
        except NotApplicable as reason:
            reasons.append(str(reason))
            continue
        if curve is not None:
            return name, curve
    if len(reasons) == len(looks):
        raise NotApplicable(reasons[0])
    return None


def describe(what: str, curve: LossCurve) -> str:
    """Describe the course of the loss in a sentence or two."""
    if what == "diverged":
        baseline = ""
        if curve.chance is not None:
            baseline = f" A constant prediction would have a loss of {curve.chance:.4g}."
        return (
            f"The loss diverged: it started at {curve.began:.4g}, never fell below {curve.lowest:.4g}, and was "
            f"about {curve.ended:.4g} from step {curve.since:,} to {curve.until:,}.{baseline}"
        )
    if what == "stuck":
        return (
            f"The model has learned nothing: its cross-entropy loss averaged {curve.ended:.4g} from "
            f"step {curve.since:,} to {curve.until:,}. A constant prediction would have a loss of "
            f"{curve.chance:.4g}."
        )
    assert curve.swings is not None
    low, high = curve.swings
    return (
        f"The loss on a repeated batch oscillates instead of falling: from step {curve.since:,} to "
        f"{curve.until:,} it swings between {low:.4g} and {high:.4g}, with a mean of {curve.ended:.4g}, "
        f"after starting at {curve.began:.4g}."
    )


def has_fallen(losses: LossHistory | None) -> bool | None:
    """Return whether the last quarter's median loss is a tenth below both the first loss and the first ten.

    Below both, since a first step that is too large raises the next losses, which then fall in any case.

    Returns:
        None if not known: no losses, or too few.
    """
    if losses is None:
        return None
    values = losses.values[np.isfinite(losses.values)]
    if values.size < FEWEST_LOSSES:
        return None
    first = float(np.median(values[:FIRST]))
    last = float(np.median(values[-(values.size // 4) :]))
    return all(start - last > (1 - LEARNED) * abs(start) for start in (first, float(values[0])))


def finite_losses(losses: LossHistory, fewest: int = FEWEST_LOSSES) -> tuple[Array, Array]:
    """Return the steps (n,) and losses (n,) up to the first that is not finite.

    Raises:
        NotApplicable: there are fewer than `fewest`.
    """
    bad = np.flatnonzero(~np.isfinite(losses.values))
    end = int(bad[0]) if bad.size else len(losses.values)
    if end < fewest:
        raise NotApplicable(f"needs {fewest} losses that are finite")
    return losses.steps[:end], losses.values[:end]


def chance_level(answers: PredictionFacts) -> float:
    """Return the entropy of the labels in nats: the lowest loss of a constant prediction.

    Raises:
        NotApplicable: too few labels are known, or all are of one class, or each batch holds one class only.
    """
    counts = answers.labels
    total = counts.sum(axis=0)
    if total.sum() < EXAMPLES or (total > 0).sum() < 2:
        raise NotApplicable(f"needs the labels of {EXAMPLES} examples, not all of one class")
    each = counts[counts.sum(axis=1) > 1]
    if each.size and np.median(each.max(axis=1) / each.sum(axis=1)) > max(PURE, float(total.max() / total.sum())):
        raise NotApplicable("needs batches of mixed classes")
    shares = total[total > 0] / total.sum()
    return float(-(shares * np.log(shares)).sum())


def has_learned(answers: PredictionFacts | None) -> bool:
    """Return whether a classifier is known to have been clearly below the chance level."""
    if answers is None or not answers.plain_loss:
        return False
    try:
        chance = chance_level(answers)
    except NotApplicable:
        return False
    known = answers.cross_entropies[np.isfinite(answers.cross_entropies)]
    return _ever_below(known, LEARNED * chance)


def at_chance(answers: PredictionFacts | None) -> bool:
    """Return whether a classifier is known to be at or above the chance level over the whole run."""
    if answers is None or not answers.plain_loss:
        return False
    try:
        chance = chance_level(answers)
    except NotApplicable:
        return False
    known = np.isfinite(answers.cross_entropies)
    weights = answers.labels.sum(axis=1)[known]
    return bool(np.average(answers.cross_entropies[known], weights=weights) >= AT_CHANCE[0] * chance)


def _far_above_chance(answers: PredictionFacts) -> LossCurve | None:
    known = np.isfinite(answers.cross_entropies)
    steps, losses = answers.steps[known], answers.cross_entropies[known]
    if len(losses) < SAMPLES:
        raise NotApplicable(f"needs the predictions of {SAMPLES} steps")
    chance = chance_level(answers)
    last = losses[-max(3, len(losses) // 4) :]
    # The minimum of three: the first update may already have raised the loss.
    began, ended = float(losses[:3].min()), float(np.median(last))
    lowest = min(float(np.median(part)) for part in np.array_split(losses, max(1, len(losses) // 3)))
    if ended < FAR_ABOVE_CHANCE * chance or ended < ROSE * max(began, lowest) or last.min() < chance:
        return None
    return LossCurve(began, lowest, ended, int(steps[-len(last)]), int(steps[-1]), chance)


def _soared(known: LossHistory, updates: UpdateHistory | None) -> LossCurve | None:
    fewest = 5
    steps, losses = finite_losses(known, fewest)
    broke = len(losses) < len(known.values)
    if not broke and len(losses) < FEWEST_LOSSES:
        raise NotApplicable(f"needs the losses of {FEWEST_LOSSES} steps")
    began = float(np.median(losses[: max(1, min(10, len(losses) // 4))]))
    if began <= 0:
        return None  # multiples of such a loss are meaningless
    if broke and losses[-1] >= SOARED_TO_NAN * began and losses[-1] == losses.max() and _rising(losses[-4:]):
        return LossCurve(began, float(losses.min()), float(losses[-1]), int(steps[0]), int(steps[-1]))
    if broke or not (_weights_grew(updates) or large_updates(updates, int(steps[len(steps) // 2]))):
        return None
    last = losses[-(len(losses) // 4) :]
    blocks = np.array_split(losses, 8)
    lowest = min(float(np.median(block)) for block in blocks)
    ended = float(np.median(last))
    if ended < SOARED * max(began, lowest) or last.min() < SOARED / 10 * max(began, lowest):
        return None
    return LossCurve(began, lowest, ended, int(steps[-len(last)]), int(steps[-1]))


def _rising(losses: Array) -> bool:
    return bool((np.diff(losses) > 0).all())


def _weights_grew(updates: UpdateHistory | None) -> bool:
    if updates is None or len(updates.steps) < 2:
        return False
    norms = updates.weight_norms
    first, last = (np.sqrt(np.nansum(np.square(row, dtype=np.float64))) for row in (norms[0], norms[-1]))
    return bool(math.isfinite(last) and first > 0 and last >= WEIGHTS_GREW * first)


def _ever_below(losses: Array, level: float) -> bool:
    """Return whether four consecutive losses averaged below a level; fewer may be due to chance."""
    if len(losses) < 4:
        return bool(losses.size) and bool(losses.mean() < level)
    means = np.convolve(losses, np.ones(4) / 4, mode="valid")
    return bool((means < level).any())


def _discriminates(answers: PredictionFacts, late: Array, known: Array) -> bool:
    """Return whether accuracy exceeds the share of the most frequent class by three standard errors."""
    labels = answers.labels[known][late]
    count, right = labels.sum(), answers.right[known][late].sum()
    share = labels.sum(axis=0).max() / count
    return bool(right > count * share + 3 * math.sqrt(count * share * (1 - share)))


def _explained(steps: StepHistory) -> bool:
    """Return whether gradients are hardly ever zeroed, which explains any bad curve."""
    seen = steps.gradients_zeroed >= 0
    left = steps.gradients_zeroed == 0
    return bool(seen.sum() >= 4 and left.sum() >= 0.9 * seen.sum())
