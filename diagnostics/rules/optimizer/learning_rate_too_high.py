"""See `LearningRateTooHigh`."""

from __future__ import annotations

import math

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.course import TargetHistory, Verdicts
from diagnostics.facts.experiments import Experiments
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.shared import loss_curve, lr_trial, update_size, whole_run
from diagnostics.rules.shared.experiments import better_rate, lower_rate_cures
from diagnostics.rules.shared.learnable import is_learnable

REPLACED = 1.0  # of a layer's norm, in one step: its earlier weights are lost
STEPS = 200  # in a watched run that is stuck; by then, steps of 1% add up to twice the weights


BY_HAND = (
    "subtract the gradient: weight.assign_sub(rate * gradient); adding it increases the loss",
    "in the update, multiply the gradient by a factor 10 times smaller",
)


class LearningRateTooHigh(Rule):
    """The learning rate is so high that each update overshoots.

    ## What it does
    Trains copies of the model on one batch with your optimizer: one copy at your learning rate and, if it does not
    learn, more copies at lower rates. The rule compares the loss of each copy with the loss of a constant
    prediction and measures how much a step changes the weights. In a watched run, it looks for updates that are
    too large while the loss diverges, stays at chance level, or oscillates on a repeated batch.

    ## Why it is bad
    The gradient describes the loss well only near the current weights. An update that is too large overshoots and
    often leaves dead or saturated units. The loss then stays at the level of a constant prediction, oscillates, or
    becomes NaN. Wide and deep networks need smaller updates than small ones.

    ## Example
    ```python
    # 6 layers, 512 wide: stalls at ln 3
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)
    ```

    ## Instead
    ```python
    model.compile(optimizer=keras.optimizers.Adam(5e-5), loss=loss)
    ```

    ## Thresholds
    When the copies are trained on the batch for about 30 steps, all of these must hold:

    - At your learning rate, the loss becomes NaN or stays high: it never falls below half of the loss of the best
      constant prediction, and its median over the last third is above 0.9 times that loss.
    - At another learning rate, at most a third of yours, the loss falls below half of the loss of the best
      constant prediction.
    - At your learning rate, at least one step changes the weights by at least 1% of their norm (the median over
      all weight matrices).

    If updates reach 3% of the norm but a classifier still memorises the batch, new copies are trained for 60 steps
    on 8 batches, with a threshold of 0.7 instead of 0.9.

    In a watched run, a typical update (the median over layers and sampled steps) must change the weights by at
    least 1% of their norm, or by at least 10% in the first 20 steps. If a layer has shrunk, as it does under
    strong weight decay, its updates are compared with its initial norm. If the median layer ends with less than
    10% of its initial norm, the first 20 steps are ignored. In addition, one of these must hold:

    - The loss diverged. For a classifier trained on cross entropy, the loss over the last quarter of the run must
      be at least twice the chance-level loss, and at least 1.5 times both the initial and the lowest loss. Any
      other loss must end at least 100 times as high as both its initial and its lowest value.
    - In a run of at least 200 steps, the loss of a classifier never fell 10% below the chance level and is no
      longer falling.
    - The loss on a batch seen at least 100 times swings by at least half of its mean and has not fallen.

    A complete run of at least 100 steps is also reported if three conditions hold: it ended no better than a
    constant prediction, a linear or RBF (radial basis function) fit shows that there is something to learn, and at
    least one step changed the weights by more than their own norm (median over the layers).

    A run that did not learn is also reported if copies of the model, trained on the run's own batches, learn at a
    lower rate, and no other single change helps nearly as much; see `not-learning`.

    If gradients are never zeroed, only `gradients-not-zeroed` reports the run.

    ## Known problems
    A few batches are an easy task: a rate at which they are memorised may still be too high for the real run. The
    rule ignores the copies

    - if the learning rate is warmed up, or training starts below the full rate,
    - if the best constant prediction is unknown, or
    - if the loss was still falling at the end, fast enough to reach half of the constant prediction's loss in the
      same number of further steps.

    In a watched run, a loss whose chance level is unknown is reported only if it grows very large, because healthy
    losses in adversarial and reinforcement learning can grow tenfold.

    ## Sources
    Karpathy, CS231n notes, "Neural Networks Part 3: Learning and Evaluation", "Ratio of weights:updates" ("should
    be somewhere around 1e-3"); the Hugging Face course, chapter 8, "Debugging the training pipeline" (TensorFlow),
    "Check your hyperparameters".
    """

    severity = "warning"
    causes = ("dead-units", *TOO_LARGE_STEPS)

    def explains(self, cause: Finding, finding: Finding) -> bool | None:
        """Steps that replace the weights explain what another cure shows, where a lower rate cures the run too."""
        if cause.rule != self.name or cause.evidence.get("update_size", 0) < REPLACED:
            return None
        return lower_rate_cures(finding) or None

    @check
    def from_experiments(self, experiments: Experiments) -> Finding:
        """Report the rate at which a copy of a run that did not learn does."""
        return better_rate(self, experiments)

    @check
    def from_trial(
        self,
        trial: TrialFacts,
        loss: LossFacts,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Compare the run at the user's rate with one at a smaller rate."""
        baseline = lr_trial.constant_baseline_loss(trial, loss)
        if not lr_trial.is_too_high(trial, baseline) or not trial.better_rate:
            return None
        named = f" with {optimizer.name}" if optimizer is not None else ""
        steps = len(trial.losses)
        return self.found(
            f"A copy of the model, trained on {lr_trial.on_batches(trial)}{named} at your learning rate of "
            f"{trial.learning_rate:.3g}, "
            f"{_ended(lr_trial.final_loss(trial.losses, trial.batches), steps)}. A constant prediction "
            f"would have a loss of {baseline:.4g}. At {trial.better_rate:.3g}, with everything else "
            f"unchanged, the loss fell to {lr_trial.final_loss(trial.better_losses, trial.batches):.4g} in "
            f"{len(trial.better_losses)} steps. {_update(trial)}",
            fix=lr_trial.fix(trial.better_rate, model, optimizer),
            evidence=lr_trial.evidence(trial, baseline),
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
        """Detect a bad loss curve that is explained by updates that are too large."""
        update_size.check_measured(updates)
        seen = loss_curve.worst_curve(steps, losses, updates, answers, STEPS)
        update = update_size.large_updates(updates, seen[1].since) if seen is not None else None
        if seen is None or update is None:
            return None
        what, curve = seen
        rate = update_size.rate_until(steps, curve.until)
        much = "more than the layer's own norm" if update > 1 else f"{update:.1%} of the layer's norm"
        known = rate > 0  # 0 for a handwritten step, which takes no rate from an optimizer
        return self.found(
            f"{loss_curve.describe(what, curve)} {f'At a learning rate of {rate:.3g}, a' if known else 'A'} "
            f"typical step (the median) changed a layer by {much}; about 0.1% is usual. Such updates "
            f"overshoot{'.' if known else ', or move up the gradient.'}",
            fix=(
                lr_trial.fix(rate / 10, model, optimizer),
                f"lower the learning rate further, to {rate / 100:.3g}",
            )
            if known
            else BY_HAND,
            evidence={"course": what, "update_size": update, "learning_rate": rate, **vars(curve)},
            step=curve.since,
        )

    @check
    def from_ended_run(
        self,
        steps: StepHistory,
        losses: LossHistory,
        updates: UpdateHistory,
        targets: TargetHistory,
        verdicts: Verdicts,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Detect a run that learned nothing after an update that replaced the weights."""
        update_size.check_measured(updates)
        whole_run.check_whole(steps, verdicts)
        if self.name in verdicts.found or not is_learnable(targets.fit):
            return None
        constant, largest = float(targets.constant_losses.mean()), update_size.largest_update(updates)
        if largest < REPLACED or constant <= 0:
            return None
        ended = whole_run.late_loss(losses, steps.total_steps)
        if not math.isfinite(ended) or ended < whole_run.NO_BETTER * constant:
            return None
        rate = update_size.rate_until(steps, int(steps.steps[-1]))
        return self.found(
            f"At a learning rate of {rate:.3g}, a single step changed the median layer by {largest:,.1f} times "
            "its norm, which erases the initial weights; about 0.1% is typical. The run ended at a loss of "
            f"{ended:.4g}, while a constant prediction would have a loss of {constant:.4g}.",
            fix=(lr_trial.fix(rate / 100, model, optimizer), "use this optimizer's usual learning rate"),
            evidence={"update_size": largest, "learning_rate": rate, "ended": ended, "constant_loss": constant},
        )


def _ended(final: float, steps: int) -> str:
    if math.isfinite(final):
        return f"had a loss of {final:.4g} after {steps} steps"
    return f"had a non-finite loss after {steps} steps"


def _update(trial: TrialFacts) -> str:
    largest = lr_trial.largest_update(trial)
    much = "more than their own norm" if largest > 1 else f"up to {largest:.1%} of their norm"
    return (
        f"At your learning rate, a step changed the weights by {much}; about 0.1% is typical. Such updates "
        "overshoot."
    )
