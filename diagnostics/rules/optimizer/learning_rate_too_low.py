"""See `LearningRateTooLow`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.calls import ClipFacts
from diagnostics.facts.course import TargetHistory, Verdicts
from diagnostics.facts.experiments import Experiments
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.shared import loss_curve, lr_trial, update_size, whole_run
from diagnostics.rules.shared.clipping import always_cut_down, cut_down
from diagnostics.rules.shared.experiments import better_rate
from diagnostics.rules.shared.learnable import is_learnable

STEPS = 100  # in a watched run
REACHED = 0.5  # of the full rate, at the end of a run that ended during its warm-up
STARTED = 0.1  # of the full rate, at the end of a run whose schedule counts batches but is stepped once per epoch
TREAD = 5  # steps at one rate, at least, before the schedule is stepped again
ABOVE = 1.1  # of the constant prediction's loss: the run has not even learned how frequent each target is
HARDLY = 0.95  # of its first loss, at the end of a run whose gradients are clipped to almost nothing
WARM_UP_STEPS = 50  # in a run that is judged while its rate is still rising: shorter ones test the script


class LearningRateTooLow(Rule):
    """The learning rate is so low that the weights hardly change, no matter how long the run is.

    ## What it does
    Trains a copy of the model on one batch with your optimizer at your learning rate, and measures how far the
    loss falls and how much a step changes the weights. If both are negligible, the rule trains copies at higher
    rates. In a watched run, it measures the loss and the weights over the run itself.

    ## Why it is bad
    The loss falls, so nothing looks broken, but it falls far too slowly for any realistic run. Usually the rate
    was meant for another optimizer, such as Adam's 2e-5 used with SGD, or the exponent has a typo.

    ## Example
    ```python
    optimizer = torch.optim.SGD(model.parameters(), lr=2e-5)     # a rate for AdamW
    ```

    ## Instead
    ```python
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    ```

    ## Thresholds
    The training of the copy is extrapolated to 10,000 steps (five epochs over 64,000 examples in batches of 32).
    Three conditions must hold:

    - If the loss of the copy kept falling at the same pace, 10,000 steps would be too few to reach a loss of 0,
      even on this one batch.
    - The updates are so small (less than 1e-5 of the weight norm per step) that 10,000 of them would change the
      weights by less than 10% of their norm, even if all pointed in the same direction.
    - At a learning rate at least 10 times as high, the loss falls to half of the loss of the best constant
      prediction within 30 steps.

    For comparison, AdamW at 2e-5, the usual rate for fine-tuning, changes the weights of a transformer by 4e-4 to
    1e-3 of their magnitude per step.

    A complete run is also reported in three cases:

    - It has at least 100 steps and ended no better than a constant prediction. All its steps together could not
      have changed the weights by 10% of their norm, and a copy of the model memorises one batch at a rate that is
      at least 10 times as high.
    - It has at least 50 steps and ended during its warm-up: the rate never fell, rose by 5% or more in the last
      third, and reached at most half of the schedule's full rate. The finding is a warning if the run ended no
      better than a constant prediction (within 3%) and all its steps together could not have changed the weights
      by 10% of their norm. Otherwise, it is a note.
    - It has at least 50 steps and a schedule that counts batches but is stepped once per epoch. The rate never
      fell, rose only occasionally (at least twice, and at least 5 steps apart), and ended at 10% of the full rate
      or less.

    In a watched run, the same thresholds for loss and weights apply after 100 steps, if the learning rate has
    stopped rising. Even in the fastest-changing third of the layers, typical updates must be below 1e-5 of the
    weight norm. The finding is a warning if a classifier is known to be at chance level, or if `clip_grad_norm_`
    reduced every recorded gradient to at most a hundredth of its norm and the loss fell by at most 5%. Otherwise
    it is a note, because the model may already have converged.

    A run that did not learn is also reported if copies of the model, trained on the run's own batches, learn at a
    higher rate, and no other single change helps nearly as much; see `not-learning`.

    ## Known problems
    Many learning rates that pass these thresholds are still too low, but they are not reported. No copy is trained
    if the learning rate is warmed up, or appears to be, or if the best constant prediction is unknown.

    ## Sources
    Karpathy, CS231n notes, "Neural Networks Part 3: Learning and Evaluation", "Ratio of weights:updates" ("if it
    is lower than this then the learning rate might be too low"); Devlin et al., "BERT" (2019), appendix A.3 (rates
    of 2e-5 to 5e-5 for fine-tuning).
    """

    severity = "warning"
    causes = ("unchanged-parameters", *NO_LEARNING)

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
        """Compare the run at the user's rate with one at a larger rate."""
        baseline = lr_trial.constant_baseline_loss(trial, loss)
        if not lr_trial.is_too_low(trial, baseline) or not trial.better_rate:
            return None
        named = f" with {optimizer.name}" if optimizer is not None else ""
        first, lowest, steps = trial.losses[0], min(trial.losses), len(trial.losses)
        update = lr_trial.largest_update(trial)
        taken_off = (first - lowest) / first / (steps - 1) * update_size.LONG_RUN
        course = (
            f"stayed at a loss of {first:.5g} for {steps} steps"
            if f"{first:.5g}" == f"{lowest:.5g}"
            else f"lowered its loss from {first:.5g} to {lowest:.5g} in {steps} steps"
        )
        by = f"Each step changed the weights by at most {update:.2g} of their norm"
        changed = by if update else "No step changed the weights"
        return self.found(
            f"A copy of the model, trained on one batch{named} at your learning rate of "
            f"{trial.learning_rate:.3g}, {course}. {changed}. At that pace, {update_size.LONG_RUN:,} steps would "
            f"change the weights by {100 * update * update_size.LONG_RUN:.3g}% and lower the loss by "
            f"{100 * taken_off:.3g}%. At "
            f"{trial.better_rate:.3g}, with everything else unchanged, the loss fell to "
            f"{trial.better_losses[-1]:.4g} in {len(trial.better_losses)} steps.",
            fix=(lr_trial.fix(trial.better_rate, model, optimizer), "use this optimizer's usual learning rate"),
            evidence=lr_trial.evidence(trial, baseline),
        )

    @check
    def from_ended_run(
        self,
        trial: TrialFacts,
        steps: StepHistory,
        losses: LossHistory,
        updates: UpdateHistory,
        targets: TargetHistory,
        verdicts: Verdicts,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Compare a run that learned nothing and hardly moved with the copy that learned at a larger rate."""
        update_size.check_measured(updates)
        whole_run.check_whole(steps, verdicts)
        if update_size.warms_up(steps) or "learning-rate-too-low" in verdicts.found:
            return None
        if not trial.better_rate or trial.better_rate < trial.learning_rate * lr_trial.TIMES_LARGER * (1 - 1e-6):
            return None
        constant, moved = float(targets.constant_losses.mean()), update_size.moved(steps, updates)
        if moved is None or moved >= lr_trial.MOVED or constant <= 0:
            return None
        ended = whole_run.late_loss(losses, steps.total_steps)
        learnable = is_learnable(targets.fit) or ended >= ABOVE * constant  # at least the share of each class
        if not ended >= constant or not learnable:
            return None
        return self.found(
            f"In {steps.total_steps:,} steps at a learning rate of {trial.learning_rate:.3g}, the weights "
            f"moved by at most {moved:.2%} of their norm. The loss ended at {ended:.4g}, while a "
            f"constant prediction would have a loss of {constant:.4g}. When a copy of the model was trained on "
            f"one batch at a learning rate of {trial.better_rate:.3g}, its loss went from "
            f"{trial.better_losses[0]:.4g} to {trial.better_losses[-1]:.4g} in {len(trial.better_losses)} steps.",
            fix=(lr_trial.fix(trial.better_rate, model, optimizer), "use this optimizer's usual learning rate"),
            evidence={
                "learning_rate": trial.learning_rate,
                "better_rate": trial.better_rate,
                "steps": steps.total_steps,
                "moved": moved,
                "ended": ended,
                "constant_loss": constant,
            },
        )

    @check
    def from_warm_up(
        self,
        steps: StepHistory,
        losses: LossHistory,
        updates: UpdateHistory,
        targets: TargetHistory,
        verdicts: Verdicts,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Look for a run that ended before its warm-up did."""
        update_size.check_measured(updates)
        if steps.total_steps < WARM_UP_STEPS or not verdicts.complete or not verdicts.trained_alone:
            raise NotApplicable(
                f"needs a complete run of at least {WARM_UP_STEPS} steps that trains only this model"
            )
        full = None if optimizer is None else optimizer.full_rate
        if full is None:
            raise NotApplicable("needs a schedule whose full learning rate is known")
        rates = update_size.top_rates(steps)
        if not update_size.warms_up(steps) or (np.diff(rates) < 0).any() or rates[-1] > REACHED * full:
            return None
        moved = update_size.largest_update(updates) * steps.total_steps  # a range test ends with large ones
        constant, ended = float(targets.constant_losses.mean()), whole_run.late_loss(losses, steps.total_steps)
        has_failed = moved < lr_trial.MOVED and ended >= whole_run.NO_BETTER * constant > 0
        tenth = max(1, steps.total_steps // 10)
        outcome = (
            f" All steps together moved the weights by at most {moved:.2%} of their norm, and the loss ended "
            f"at {ended:.4g}, while a constant prediction would have a loss of {constant:.4g}."
        )
        return self.found(
            f"The run ended before its warm-up did: in {steps.total_steps:,} steps the learning rate rose from "
            f"{rates[0]:.3g} to {rates[-1]:.3g} ({100 * rates[-1] / full:.2g}% of its full value, {full:.3g})."
            + (outcome if has_failed else ""),
            fix={
                "torch": (
                    f"use a warm-up of {tenth:,} steps (a tenth of the run)",
                    "call scheduler.step() after each batch, if the scheduler counts batches",
                ),
                "trainer": f"TrainingArguments(warmup_steps={tenth})  # a tenth of the run",
            },
            evidence={
                "first_rate": float(rates[0]),
                "last_rate": float(rates[-1]),
                "full_rate": full,
                "steps": steps.total_steps,
                "moved": moved,
                "ended": ended,
                "constant_loss": constant,
            },
            severity="warning" if has_failed else "note",
        )

    @check
    def from_staircase(
        self, steps: StepHistory, verdicts: Verdicts, optimizer: OptimizerFacts | None = None
    ) -> Finding | None:
        """Look for a schedule that counts batches but is stepped so rarely that the run ends in its warm-up."""
        if steps.total_steps < WARM_UP_STEPS or not verdicts.complete:
            raise NotApplicable(f"needs a complete run of at least {WARM_UP_STEPS} steps")
        full = None if optimizer is None else optimizer.full_rate
        if full is None:
            raise NotApplicable("needs a schedule whose full learning rate is known")
        rates = update_size.top_rates(steps)
        rises = steps.steps[1:][np.diff(rates) > 0]
        if len(rises) < 2 or (np.diff(rates) < 0).any() or np.diff(rises).min() < TREAD:
            return None
        if rates[-1] > STARTED * full:
            return None
        tread = int(np.median(np.diff(rises)))
        return self.found(
            f"The scheduler was stepped only once every {tread:,} steps, so the run ended at the beginning of "
            f"its warm-up. In {steps.total_steps:,} steps the learning rate rose from {rates[0]:.3g} to "
            f"{rates[-1]:.3g} ({rates[-1] / full:.1%} of its full value, {full:.3g}). The scheduler's "
            "durations are given in batches, but it is stepped once per epoch.",
            fix={
                "torch": (
                    "call scheduler.step() after each optimizer.step(), inside the loop over the batches",
                    "specify the scheduler's durations in epochs: OneCycleLR(optimizer, max_lr=..., "
                    "total_steps=epochs)",
                ),
                "lightning": (
                    'return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": '
                    '"step"}} from configure_optimizers: without an interval, Lightning steps the '
                    "scheduler once per epoch",
                    "specify the scheduler's durations in epochs: total_steps=self.trainer.max_epochs",
                ),
            },
            evidence={
                "first_rate": float(rates[0]),
                "last_rate": float(rates[-1]),
                "full_rate": full,
                "steps": steps.total_steps,
                "steps_at_one_rate": tread,
            },
        )

    @check
    def from_history(
        self,
        run: StepHistory,
        losses: LossHistory,
        updates: UpdateHistory,
        answers: PredictionFacts | None = None,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
        clips: ClipFacts | None = None,
    ) -> Finding | None:
        """Check whether any update of the run was large enough to matter."""
        update_size.check_measured(updates)
        largest = update_size.largest_update(updates)
        if run.total_steps < STEPS:
            raise NotApplicable(f"needs {STEPS} steps")
        if update_size.warms_up(run):
            raise NotApplicable("needs a run that is past its learning-rate warm-up")
        steps, values = loss_curve.finite_losses(losses)
        if not update_size.tiny_updates(updates) or loss_curve.has_learned(answers):
            return None
        tenth = len(values) // 10
        began, ended = float(np.median(values[:tenth])), float(np.median(values[-tenth:]))
        taken_off = (began - ended) / (steps[-1] - steps[0]) * update_size.LONG_RUN
        if taken_off > abs(began):
            return None
        rate = update_size.rate_until(run, int(steps[-1]))
        at_chance = loss_curve.at_chance(answers)
        why, clip_less = cut_down(clips)
        clipped = always_cut_down(clips) and ended >= HARDLY * began
        return self.found(
            f"At a learning rate of {rate:.3g}, no sampled step changed the median layer by more than "
            f"{largest:.2g} of its norm. Even {update_size.LONG_RUN:,} such steps, all in the same direction, "
            f"would change it by only {100 * largest * update_size.LONG_RUN:.3g}%. Over {run.total_steps:,} "
            f"steps, the loss {_from_to(began, ended)}"
            + (", no better than a constant prediction." if at_chance else ".")
            + f" {why}".rstrip(),
            fix=clip_less
            or (lr_trial.fix(rate * 100, model, optimizer), "use this optimizer's usual learning rate"),
            evidence={
                "learning_rate": rate,
                "largest_update": largest,
                "first_loss": began,
                "final_loss": ended,
                "clipped_to": clips.cut_to if clips is not None and clip_less else None,
            },
            severity="warning" if at_chance or clipped else "note",
        )


def _from_to(began: float, ended: float) -> str:
    first, last = f"{began:.5g}", f"{ended:.5g}"
    return f"stayed at {last}" if first == last else f"began at {first} and ended at {last}"
