"""See `LossPlateau`."""

from __future__ import annotations

import math
import statistics

from diagnostics import learning_rates
from diagnostics.facts import LossFacts, ModelFacts, OptimizerFacts, TrialFacts
from diagnostics.finding import Finding
from diagnostics.rule import Rule

AT_FLOOR = 0.05  # of the floor: how far the middle of the last losses may lie from it
HOVERING = 0.2  # of the floor: from the least to the greatest of them


class LossPlateau(Rule):
    """The loss hovers at the chance level, although the batch can be learned.

    ## What it does
    Looks at the last third of a trial at the user's own learning rate, on a copy of the model and one batch:
    does the loss hover where one constant answer to every example would put it, without a trend? And did
    another rate get well below it?

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

    ## Known problems
    Before training, the plateau is seen on a few batches at most, and only where another learning rate gets
    past it: a plateau for any other reason is left to `cannot-overfit-one-batch`. In a real run it is for
    `diagnostics.watch` to find. Not judged where the rate warms up or may do so.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "input-independent baseline"; the Hugging
    Face course, chapter 8, "Debugging the training pipeline" (TensorFlow).
    """

    severity = "warning"
    no_exhibit = "cage 06 stalls there after a hundred steps, which is for a watch over the training to see"

    def from_trial(
        self,
        trial: TrialFacts,
        loss: LossFacts,
        model: ModelFacts | None = None,
        optimizer: OptimizerFacts | None = None,
    ) -> Finding | None:
        """Look at the end of the run at the user's rate."""
        floor = learning_rates.floor_of(trial, loss)
        last = trial.losses[-max(1, len(trial.losses) // 3) :]
        if not trial.better_rate:
            return None
        if not learning_rates.is_too_high(trial, floor) and not learning_rates.is_too_low(trial, floor):
            return None  # such a run has merely not got going yet, as fine-tuning at 2e-5
        if not all(math.isfinite(value) for value in last):
            return None
        if abs(statistics.median(last) - floor) > AT_FLOOR * floor or max(last) - min(last) > HOVERING * floor:
            return None
        if learning_rates.leads_below(trial.losses, learning_rates.BELOW * floor):
            return None
        return self.found(
            f"On {learning_rates.on_batches(trial)}, at your learning rate of {trial.learning_rate:.3g}, the loss "
            f"is stuck at the chance level: in the last {len(last)} of {len(trial.losses)} steps it lies between "
            f"{min(last):.4g} and {max(last):.4g}, and one and the same answer for every example would reach "
            f"{floor:.4g}. It can be learned: at {trial.better_rate:.3g} the loss came down to "
            f"{learning_rates.ended(trial.better_losses, trial.batches):.4g} in "
            f"{len(trial.better_losses)} steps.",
            fix=learning_rates.fix(trial.better_rate, model, optimizer),
            evidence={
                **learning_rates.evidence(trial, floor),
                "lowest_of_last": min(last),
                "highest_of_last": max(last),
            },
        )
