"""See `LossDivergence`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.rules.shared import loss_curve, update_size


class LossDivergence(Rule):
    """The loss diverges although the updates are of normal size.

    ## What it does
    In a watched run: compares the training loss over the last quarter of the run with its initial and its lowest
    level. Reports if it ended far above both, and the updates were of normal size.

    ## Why it is bad
    Training should lower the training loss. If it keeps rising, the optimizer does not follow the gradient of this
    loss, or no longer does: it maximises instead of minimising, a term of the loss has no lower bound, the weights
    grow without bound, or the data has changed. The model forgets what it has learned.

    ## Example
    ```python
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, maximize=True)     # once for a reward
    ```

    ## Instead
    ```python
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    ```

    ## Thresholds
    For a classifier trained on cross entropy: the median cross entropy of the last quarter of the sampled steps is
    at least twice that of a constant prediction, and 1.5 times its initial and its lowest level. For any other
    loss, of 40 steps or more: 100 times both, and the weights have grown threefold. All limits are ours. If a step
    changes the weights by 1% or more, `learning-rate-too-high` reports it instead; if gradients are never zeroed,
    `gradients-not-zeroed` does.

    ## Known problems
    The limits for other losses are wide, because some healthy losses rise: that of the generator in adversarial
    training, that of Q-learning while values grow, one with a weight that a schedule raises. A loss that starts
    below 0, as one with the wrong sign does, is not covered.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019).
    """

    severity = "warning"
    causes = ("constant-predictions", "not-learning")

    @check
    def from_history(
        self,
        steps: StepHistory,
        losses: LossHistory | None = None,
        updates: UpdateHistory | None = None,
        answers: PredictionFacts | None = None,
    ) -> Finding | None:
        """Compare the end of the run with its beginning and its minimum."""
        curve = loss_curve.diverged(steps, losses, updates, answers)
        if curve is None or update_size.large_updates(updates, curve.since):
            return None
        update = update_size.update_size(updates, curve.since)
        not_the_updates = (
            ""
            if update is None
            else f" Large updates are not the cause: a step changes a layer by {update:.2g} of its norm."
        )
        return self.found(
            f"{loss_curve.describe('diverged', curve)}{not_the_updates}",
            fix=(
                "check the signs: maximize=True, or a minus before a term of the loss",
                "look for a term of the loss without a lower bound",
                "check what changed in the data or in a schedule when the loss began to rise",
            ),
            evidence={"update_size": update, **vars(curve)},
            step=curve.since,
        )
