"""See `LossDivergence`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.rules.shared import loss_curve, update_size


class LossDivergence(Rule):
    """The loss rises for good, and steps that are too large do not explain it.

    ## What it does
    While a model is watched: compares the level of the training loss over the last quarter of the run with
    where it began and where it was lowest. Speaks up if it ended far above both, and the steps were of ordinary
    size.

    ## Why it is bad
    Training lowers the training loss; if it rises for good, what is stepped on is not the gradient of this
    loss, or not any more. The optimizer goes up and not down, a term of the loss has no lower bound, the
    weights grow without limit, or the data changed under the model. What the model had learned is being lost.

    ## Example
    ```python
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, maximize=True)     # once for a reward
    ```

    ## Instead
    ```python
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    ```

    ## Thresholds
    For a classifier seen to be trained on cross entropy: the loss of its answers, as a median over the last
    quarter of the steps looked at, is at least twice what one and the same answer for everything would have,
    1.5 times where it began and where it was lowest. For any other loss, of 40 steps or more: 100 times both,
    and the weights have grown threefold. All are ours. Where a step changes the weights by 1% or more,
    `learning-rate-too-high` speaks instead; where gradients are never zeroed, `gradients-not-zeroed` does.

    ## Known problems
    The limits for other losses are wide, because several of these rise in good health: the generator's in
    adversarial training, that of Q-learning while values grow, one with a weight that a schedule raises. A loss
    that is below 0 at the beginning is not judged, as one with the wrong sign is.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019).
    """

    severity = "warning"
    causes = ("constant-predictions",)
    no_exhibit = "in the zoo's cages a loss that rises for good does so at a learning rate that is too high"

    @check
    def from_history(
        self,
        steps: StepHistory,
        losses: LossHistory | None = None,
        updates: UpdateHistory | None = None,
        answers: PredictionFacts | None = None,
    ) -> Finding | None:
        """Look at the end of the run, against its beginning and its best."""
        course = loss_curve.diverged(steps, losses, updates, answers)
        if course is None or update_size.large_updates(updates, course.since):
            return None
        update = update_size.update_size(updates, course.since)
        not_the_steps = (
            ""
            if update is None
            else f" Steps that are too large are not the cause: they change a layer by {update:.2g}."
        )
        return self.found(
            f"{loss_curve.in_words('diverged', course)}{not_the_steps}",
            fix=(
                "look at the signs (maximize=True, a minus before a term), at what has no lower bound, and at "
                "what changed in the data or in a schedule where the loss began to rise"
            ),
            evidence={"update_size": update, **vars(course)},
            step=course.since,
        )
