"""See `Overfitting`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.training import EvaluationHistory, LossHistory

AFTER_BEST = 4  # evaluations
EVALUATIONS = 6
TREND = 0.6  # Kendall's tau of the evaluations since the best: 1 if each is worse than all before
ROSE = 0.4  # of the decrease of the evaluation loss, and of its minimum
NOISE = 5.0  # standard deviations of the noise between the best and the last; 50 values of pure noise span 4.5
FELL = 0.2  # of the training loss, since the best evaluation


class Overfitting(Rule):
    """The training loss falls while the evaluation loss rises.

    ## What it does
    In a watched run, the rule compares the losses of evaluations with the training losses between them. It fires
    if the evaluation loss has clearly risen since its minimum while the training loss kept falling. The evaluation
    losses are those passed to `watch.evaluated(loss)`. In a PyTorch loop that passes none, they are the losses
    computed under `torch.no_grad()`.

    ## Why it is bad
    Once the evaluation loss is past its minimum, the model memorises its training examples and gets worse on all
    others. The weights at the end of the run are not the best weights.

    ## Example
    ```python
    for epoch in range(100):
        train(model)
        evaluate(model)                     # best in epoch 12, worse ever since
    torch.save(model.state_dict(), "model.pt")
    ```

    ## Instead
    ```python
    for epoch in range(100):
        train(model)
        loss = evaluate(model)
        if loss < best:
            best = loss
            torch.save(model.state_dict(), "model.pt")
    ```

    ## Thresholds
    There must be at least 6 evaluations, at least 4 of them after the best one. From the best evaluation onwards,
    at least 5 evaluations must have a known training loss. The last evaluation loss must exceed the lowest by each
    of these three margins:

    - 40% of the decrease from the highest earlier loss to the lowest,
    - 40% of the lowest loss itself, and
    - 5 standard deviations of the noise in the evaluation losses.

    Each of the last four evaluation losses must exceed the lowest by at least half of each margin. In at least 80%
    of all pairs of evaluations since the best one, the later loss must be higher. Over the same period, the
    training loss must have fallen by at least 20%, and in at least 80% of the pairs, the later training loss must
    be lower.

    The finding is a note if the loop called `model.state_dict()` at the best evaluation but at no later one.

    ## Known problems
    A loop that is about to stop early is fine but is still reported, as is a Keras or Trainer run that saves
    the best weights. Accuracy can rise together with the loss, because the model becomes more confident in its
    mistakes.

    ## Sources
    Prechelt, "Early Stopping - But When?" (1998); Guo et al., "On Calibration of Modern Neural Networks" (2017),
    section 3, on a loss that rises together with accuracy.
    """

    severity = "warning"

    @check
    def from_history(self, evaluations: EvaluationHistory, training: LossHistory) -> Finding | None:
        """Compare the evaluation losses since the best one with the training losses."""
        there = np.isfinite(evaluations.losses)
        steps, losses = evaluations.steps[there], evaluations.losses[there]
        if len(losses) < EVALUATIONS:
            raise NotApplicable(f"needs at least {EVALUATIONS} evaluations")
        best = int(losses.argmin())
        since = losses[best:]
        if len(since) <= AFTER_BEST or not _rose(losses, best):
            return None
        levels = _training_levels(training, steps[best:])
        if len(levels) <= AFTER_BEST or _order(levels) > -TREND:
            return None
        at_best, at_end = float(levels[0]), float(levels[-1])
        if at_best - at_end < FELL * abs(at_best):
            return None
        return self.found(
            f"The evaluation loss was lowest after step {steps[best]:,} ({losses[best]:.4g}) and rose to "
            f"{losses[-1]:.4g} by step {steps[-1]:,}, {len(since) - 1} evaluations later. Meanwhile, the training "
            f"loss fell from {at_best:.4g} to {at_end:.4g}: the model is memorising its training examples, and "
            "its current weights are not its best.",
            fix=(
                "save the weights after the best evaluation, and stop training soon after it",
                "add data, augmentation, dropout or weight decay, so that overfitting starts later",
            ),
            evidence={
                "best_step": int(steps[best]),
                "best_loss": float(losses[best]),
                "last_loss": float(losses[-1]),
                "training_loss_at_best": at_best,
                "training_loss_at_end": at_end,
            },
            step=int(steps[best]),
            severity="note" if _saved(evaluations, int(steps[best])) else None,
        )


def _saved(evaluations: EvaluationHistory, best: int) -> bool:
    """Return whether the script saved its weights at the best evaluation, and at none after it."""
    saved = evaluations.saved_after
    return best in saved and not any(step > best for step in saved.intersection(evaluations.steps.tolist()))


def _rose(losses: Array, best: int) -> bool:
    since = losses[best:]
    measure = max(losses[: best + 1].max() - losses[best], abs(losses[best]))
    # A trend leaves second differences nearly alone; noise gives them sqrt(6) times its own standard deviation.
    noise = float(np.abs(np.diff(losses, 2)).mean()) * math.sqrt(math.pi / 2) / math.sqrt(6)
    much = max(ROSE * measure, NOISE * noise)
    if since[-1] - since[0] < much or since[-AFTER_BEST:].min() - since[0] < much / 2:
        return False
    return _order(since) >= TREND


def _order(values: Array) -> float:
    """Return 1 if each value is above all before it, -1 if below (Kendall's tau)."""
    first, second = np.triu_indices(len(values), 1)
    return float(np.sign(values[second] - values[first]).mean())


def _training_levels(training: LossHistory, steps: Array) -> Array:
    """Return the training loss before each evaluation: the median over the steps between two of them."""
    known = np.isfinite(training.values)
    at, losses = training.steps[known], training.values[known]
    span = max(1, int(np.median(np.diff(steps))))
    windows = [losses[(at <= step) & (at > step - span)] for step in steps]
    return np.array([np.median(window) for window in windows if window.size])
