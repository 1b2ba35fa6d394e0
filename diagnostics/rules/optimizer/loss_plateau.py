"""See `LossPlateau`."""

from __future__ import annotations

import math
import statistics

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.training import PredictionFacts, StepHistory, UpdateHistory
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.shared import loss_curve, lr_trial, update_size

AT_FLOOR = 0.05  # of the floor: how far the middle of the last losses may lie from it
HOVERING = 0.2  # of the floor: from the least to the greatest of them
STEPS = 400  # of a watched run; many healthy ones take some hundred to leave the chance level
MOVED = 1.0  # of the weights: how far the steps would have led, had all gone the same way


class LossPlateau(Rule):
    """The loss hovers at the chance level, although the batch can be learned.

    ## What it does
    Looks at the last third of a trial at the user's own learning rate, on a copy of the model and one batch:
    does the loss hover where one constant answer to every example would put it, without a trend? And did
    another rate get well below it? In a run that is watched it measures the cross entropy of the model's answers
    at the steps looked at, and holds it against the entropy of the labels seen there.

    ## Why it is bad
    A loss at the chance level means that the model has learned how common each class is, and nothing else. The
    first steps bring a loss down to there and look like learning; what comes after is noise. It passes for a
    hard problem, or for one that needs more steps.

    ## Example
    ```python
    model.compile(optimizer="adam", loss=loss)            # three classes: stays at ln 3 = 1.10
    model.fit(batches, epochs=10)
    ```

    ## Instead
    ```python
    model.compile(optimizer=keras.optimizers.Adam(5e-5), loss=loss)
    model.fit(batches, epochs=10)
    ```

    ## Thresholds
    Over the last third of the trial the median must lie within 5% of the loss of the best constant answer
    (for cross entropy the entropy of the batch's labels), the losses within 20% of each other, and what is
    left of a fall must not lead below 0.9 of it in as many steps again. And the run must be stuck there, by
    the thresholds of `learning-rate-too-high` or `learning-rate-too-low`: an untrained classifier starts near
    the chance level, and one that is trained gently stays there for a while. The numbers are ours.

    In a watched run of at least 400 steps, over its last two thirds: the cross entropy lies within 5% of the
    labels' entropy in each quarter of that time, it fell by less than 2% from one half to the other, no more
    answers are right than the commonest class explains, and at no time in the run it was 10% below. That it is
    stuck and not slow is shown by the weights: had all steps gone the same way, they would have changed by their
    own size, and the rate does not rise any more. Where steps are larger than 1%, `learning-rate-too-high` speaks
    instead.

    ## Known problems
    Before training, the plateau is seen on a few batches at most, and only where another learning rate gets
    past it: a plateau for any other reason is left to `cannot-overfit-one-batch`. Not judged where the rate
    warms up or may do so. A watched run is judged only if its loss is seen to be cross entropy without weights,
    on scores (examples, classes); and a task that is hard by nature, as the parity of many bits, or whose
    labels have nothing to do with the inputs, looks just like it.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "input-independent baseline"; the Hugging
    Face course, chapter 8, "Debugging the training pipeline" (TensorFlow).
    """

    severity = "warning"
    causes = ("constant-predictions", "cannot-overfit-one-batch")
    no_exhibit = "cage 06 stalls there after a hundred steps, which is for a watch over the training to see"

    @check
    def from_trial(
        self,
        trial: TrialFacts,
        loss: LossFacts,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Look at the end of the run at the user's rate."""
        floor = lr_trial.floor_of(trial, loss)
        last = trial.losses[-max(1, len(trial.losses) // 3) :]
        if not trial.better_rate:
            return None
        if not lr_trial.is_too_high(trial, floor) and not lr_trial.is_too_low(trial, floor):
            return None  # such a run has merely not got going yet, as fine-tuning at 2e-5
        if not all(math.isfinite(value) for value in last):
            return None
        if abs(statistics.median(last) - floor) > AT_FLOOR * floor or max(last) - min(last) > HOVERING * floor:
            return None
        if lr_trial.leads_below(trial.losses, lr_trial.BELOW * floor):
            return None
        return self.found(
            f"On {lr_trial.on_batches(trial)}, at your learning rate of {trial.learning_rate:.3g}, the loss "
            f"is stuck at the chance level: in the last {len(last)} of {len(trial.losses)} steps it lies between "
            f"{min(last):.4g} and {max(last):.4g}, and one and the same answer for every example would reach "
            f"{floor:.4g}. It can be learned: at {trial.better_rate:.3g} the loss came down to "
            f"{lr_trial.ended(trial.better_losses, trial.batches):.4g} in "
            f"{len(trial.better_losses)} steps.",
            fix=lr_trial.fix(trial.better_rate, model, optimizer),
            evidence={
                **lr_trial.evidence(trial, floor),
                "lowest_of_last": min(last),
                "highest_of_last": max(last),
            },
        )

    @check
    def from_answers(self, steps: StepHistory, updates: UpdateHistory, answers: PredictionFacts) -> Finding | None:
        """Look whether a classifier has stayed at the chance level, however far its weights have moved."""
        course = loss_curve.stuck(steps, answers, STEPS)
        moved = update_size.moved(steps, updates)
        if moved is None:
            raise NotApplicable("needs steps before and after which the weights were compared")
        if course is None or update_size.large_updates(updates, course.since):
            return None
        assert course.chance is not None  # or it would not be stuck
        if moved < MOVED or course.ended > loss_curve.AT_CHANCE[1] * course.chance:
            return None
        total = answers.labels.sum()
        return self.found(
            f"The loss is stuck at the chance level: from step {course.since:,} to {course.until:,} the cross "
            f"entropy of the model's answers is {course.ended:.4g}, and one and the same answer for everything "
            f"would have {course.chance:.4g}. In the whole run {answers.right.sum():,} of the {total:,} "
            f"answers looked at were right, and {answers.labels.sum(axis=0).max():,} of their labels are of "
            f"the commonest class. It is not for want of movement: the steps so far add up to {moved:.1f} "
            "times the size of the weights.",
            fix=(
                "train on one batch of a few examples first: if these cannot be learned by heart, what the model "
                "gets does not tell them apart (look at inputs, labels and activations); if they can, change the "
                "learning rate"
            ),
            evidence={"moved": moved, **vars(course)},
            step=course.since,
        )
