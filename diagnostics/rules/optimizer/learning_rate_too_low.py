"""See `LearningRateTooLow`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.shared import loss_curve, lr_trial, update_size

STEPS = 100  # of a watched run


class LearningRateTooLow(Rule):
    """The learning rate is so low that nothing moves, however long the run.

    ## What it does
    Trains a copy of the model on one batch with the user's own optimizer and rate, and looks how much the loss
    fell and how much a step changes the weights. Where that is next to nothing, it tries larger rates. In a run
    that is watched it measures both over the run itself.

    ## Why it is bad
    The loss falls, so nothing looks broken, but at that pace it will not have come down by the end of any run
    that one can wait for. Most often a rate that suits one optimizer was given to another, as Adam's 2e-5 to
    SGD, or an exponent has a slip.

    ## Example
    ```python
    optimizer = torch.optim.SGD(model.parameters(), lr=2e-5)     # a rate for AdamW
    ```

    ## Instead
    ```python
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    ```

    ## Thresholds
    Judged by where 10,000 steps at the pace of the trial would lead (five epochs over 64,000 examples, in
    batches of 32): they would not learn even this one batch by heart (bring its loss to 0), and the weights
    would change by less than 10% of their size even if every step went the same way, that is, by less than 1e-5 a
    step. A rate at least 10 times as large must, in 30 steps, get to half of what the best constant answer
    reaches. The numbers are ours. AdamW at 2e-5, the usual rate for fine-tuning, is far from them: it moves
    each weight by about its rate, and a transformer's weights are about 0.02 to 0.05 in size, so a step
    changes them by 4e-4 to 1e-3. The rule of thumb for training from scratch is 1e-3.

    A watched run is judged by the same two limits, after 100 steps, if its rate has stopped rising. Even the
    largest step (the median over layers) must be below 1e-5, so that a schedule that goes down to 0 is no
    alarm; and so must the usual step of the fastest third of the layers, for where these move it is not the rate
    that holds the others back, but their gradient, as in `vanishing-gradients`. A warning if a classifier is seen
    to be at the chance level; otherwise a note, for a model may be near its best already.

    ## Known problems
    Between this limit and a good rate lies a wide stretch of rates that are merely slow; they are silent.
    Not judged where the rate warms up or may do so, and where the best constant answer is not known.

    ## Sources
    Karpathy, CS231n notes, "Neural Networks Part 3: Learning and Evaluation", "Ratio of weights:updates"
    ("if it is lower than this then the learning rate might be too low"); Devlin et al., "BERT" (2019),
    appendix A.3 (rates of 2e-5 to 5e-5 for fine-tuning).
    """

    severity = "warning"
    causes = ("unchanged-parameters", *NO_LEARNING)
    no_exhibit = "too slow to watch: the exhibit on learning rates shows the opposite, which does more harm"

    @check
    def from_trial(
        self,
        trial: TrialFacts,
        loss: LossFacts,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Compare the run at the user's rate with one at a larger rate."""
        floor = lr_trial.floor_of(trial, loss)
        if not lr_trial.is_too_low(trial, floor) or not trial.better_rate:
            return None
        named = f" with {optimizer.name}" if optimizer is not None else ""
        first, lowest, steps = trial.losses[0], min(trial.losses), len(trial.losses)
        update = lr_trial.largest_update(trial)
        taken_off = (first - lowest) / first / (steps - 1) * update_size.LONG_RUN
        return self.found(
            f"A copy of the model, trained on one batch{named} at your learning rate of "
            f"{trial.learning_rate:.3g}, lowered its loss from {first:.5g} to {lowest:.5g} in {steps} steps, "
            f"and a step changed the weights by {update:.2g} of their size. "
            f"At that pace {update_size.LONG_RUN:,} steps change them by "
            f"{update * update_size.LONG_RUN:.2%}, and take {taken_off:.2%} off the loss. At "
            f"{trial.better_rate:.3g}, with all else as it was, the loss came down to "
            f"{trial.better_losses[-1]:.4g} in {len(trial.better_losses)} steps.",
            fix=lr_trial.fix(trial.better_rate, model, optimizer)
            + ", or the rate that is usual for this optimizer",
            evidence=lr_trial.evidence(trial, floor),
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
    ) -> Finding | None:
        """Look whether any step of the run was large enough to get anywhere."""
        update_size.check_measured(updates)
        largest = update_size.largest_update(updates)
        if run.total_steps < STEPS:
            raise NotApplicable(f"needs {STEPS} steps")
        if update_size.warms_up(run):
            raise NotApplicable("needs a run whose learning rate has stopped rising")
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
        return self.found(
            f"At a learning rate of {rate:.3g} no step looked at changed a layer by more than {largest:.2g} of "
            f"its size (the median over layers); {update_size.LONG_RUN:,} such steps, all the same way, would "
            f"change it by {largest * update_size.LONG_RUN:.2%}. In {run.total_steps:,} steps the loss went "
            f"from {began:.5g} to {ended:.5g}"
            + (", which is what one and the same answer for everything has." if at_chance else "."),
            fix=lr_trial.fix(rate * 100, model, optimizer) + ", or the rate that is usual for this optimizer",
            evidence={"learning_rate": rate, "largest_update": largest, "first_loss": began, "final_loss": ended},
            severity="warning" if at_chance else "note",
        )
