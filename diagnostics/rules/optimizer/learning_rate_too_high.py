"""See `LearningRateTooHigh`."""

from __future__ import annotations

import math

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.shared import loss_curve, lr_trial, update_size

STEPS = 200  # of a watched run that is stuck; steps of 1% each have had the way of two whole weights by then


class LearningRateTooHigh(Rule):
    """The learning rate is so high that each step undoes what the last one learned.

    ## What it does
    Trains copies of the model on one batch with the user's own optimizer: one at the user's rate, and, where
    that gets nowhere, others at smaller rates. Where one batch is learned at very large steps, the same is
    done with a few batches in turn. It compares their losses with what one constant answer to every
    example would reach, and measures how much a step changes the weights. In a run that is watched it looks for
    a loss that rises for good, stays at the chance level or swings on one and the same batch, while steps are
    too large.

    ## Why it is bad
    The gradient points downhill only close by. A step that changes the weights too much lands somewhere
    else, often with units that are stuck at their bounds or dead, and the loss stalls at the level of a
    constant answer, swings, or becomes NaN. A wide or deep network needs smaller steps than a small one, so a
    rate that was fine there says nothing here.

    ## Example
    ```python
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)   # 6 layers, 512 wide: stalls at ln 3
    ```

    ## Instead
    ```python
    model.compile(optimizer=keras.optimizers.Adam(5e-5), loss=loss)
    ```

    ## Thresholds
    All of these, on the same batch and in about 30 steps: at the user's rate the last third of the losses
    stays above 0.9 of the best constant answer's loss (the median; single dips do not count), or the loss
    becomes NaN, and none of them gets to half of it; a rate at most a third of it does get to half; and some
    step changes the weights (the median over all weight matrices) by at least 1% of their size, ten times the
    0.1% that the rule of thumb below asks for. The rule of thumb alone is no alarm: a small network often
    learns well at 3% and more: from there on, a batch that was learned is followed by a trial of 60 steps on
    8 batches in turn, if the model is a classifier. There the losses count as means over a turn, and
    0.7 takes the place of 0.9. The limits are ours.

    In a watched run steps are large if they change the weights by 1% or more (the median over layers and the
    steps looked at), or if the first 20 changed them by 10%, after which the weights may be so large that later
    steps look small; and one of these holds. The loss rose for good: for a classifier seen to be trained on cross
    entropy, over the last quarter of the run to twice the chance level and 1.5 times where it began and where it
    was lowest; for any other loss to 100 times both, or to 1000 times just before it stopped being finite. Or the
    classifier was never 10% below the chance level, in 200 steps or more, and is not on its way. Or the loss of
    one batch that came 100 times swings by half its size and has not fallen. A run that is explained in this way
    is not reported by `loss-divergence`, `loss-plateau` and `loss-oscillation` as well. Where gradients are never
    zeroed, that is the cause, and this rule is silent.

    ## Known problems
    A few batches are an easy task: a rate that learns them by heart may still be too high for the real run. Not
    judged where the rate warms up or may do so, because training does not begin at the full rate; where the
    best constant answer is not known; and where the loss was on its way down
    when the trial ended, fast enough to get to half in as many steps again. In a watched run a loss without a
    known chance level must go very wrong before it is reported: those of adversarial and reinforcement learning
    grow tenfold in good health.

    ## Sources
    Karpathy, CS231n notes, "Neural Networks Part 3: Learning and Evaluation", "Ratio of weights:updates"
    ("should be somewhere around 1e-3"); the Hugging Face course, chapter 8, "Debugging the training pipeline"
    (TensorFlow), "Check your hyperparameters".
    """

    severity = "warning"
    causes = ("dead-units", *TOO_LARGE_STEPS)

    @check
    def from_trial(
        self,
        trial: TrialFacts,
        loss: LossFacts,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Compare the run at the user's rate with one at a smaller rate."""
        floor = lr_trial.floor_of(trial, loss)
        if not lr_trial.is_too_high(trial, floor) or not trial.better_rate:
            return None
        named = f" with {optimizer.name}" if optimizer is not None else ""
        steps = len(trial.losses)
        return self.found(
            f"A copy of the model, trained on {lr_trial.on_batches(trial)}{named} at your learning rate of "
            f"{trial.learning_rate:.3g}, {_ended(lr_trial.ended(trial.losses, trial.batches), steps)}; one "
            f"and the same answer for every example would reach {floor:.4g}. "
            f"At {trial.better_rate:.3g}, with all else as it was, the loss came down to "
            f"{lr_trial.ended(trial.better_losses, trial.batches):.4g} in {len(trial.better_losses)} steps. "
            f"{_update(trial)}",
            fix=lr_trial.fix(trial.better_rate, model, optimizer),
            evidence=lr_trial.evidence(trial, floor),
        )

    @check
    def from_history(
        self,
        steps: StepHistory,
        updates: UpdateHistory,
        losses: LossHistory | None = None,
        answers: PredictionFacts | None = None,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Look for a bad course of the loss that steps too large explain."""
        update_size.check_measured(updates)
        seen = loss_curve.worst_course(steps, losses, updates, answers, STEPS)
        update = update_size.large_updates(updates, seen[1].since) if seen is not None else None
        if seen is None or update is None:
            return None
        what, course = seen
        rate = update_size.rate_until(steps, course.until)
        much = "more than its own size" if update > 1 else f"{update:.1%} of its size"
        return self.found(
            f"{loss_curve.in_words(what, course)} At a learning rate of {rate:.3g} a step changed a layer by "
            f"{much} (the median), where about 0.1% is usual: it undoes what the step before had learned.",
            fix=f"{lr_trial.fix(rate / 10, model, optimizer)}, and a tenth of that if it is not enough",
            evidence={"course": what, "update_size": update, "learning_rate": rate, **vars(course)},
            step=course.since,
        )


def _ended(final: float, steps: int) -> str:
    if math.isfinite(final):
        return f"had a loss of {final:.4g} after {steps} steps"
    return f"had a loss that is not finite after {steps} steps"


def _update(trial: TrialFacts) -> str:
    largest = lr_trial.largest_update(trial)
    much = "more than their own size" if largest > 1 else f"up to {largest:.1%} of their size"
    return (
        f"At your rate a step changed the weights by {much}, where about 0.1% is usual: it undoes what the step "
        "before had learned."
    )
