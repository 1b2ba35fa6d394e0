"""See `LossDivergence`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.course import Verdicts
from diagnostics.facts.training import LossHistory, PredictionFacts, StepHistory, UpdateHistory
from diagnostics.rules.shared import loss_curve, update_size

FELL_BY = 10.0  # times the first loss, below 0: a likelihood ends a few times its start below
QUICKER = 1.5  # times the fall of the quarter before, each time: a likelihood falls more and more slowly
FALLS = 40  # least number of losses
FIRST = 5  # losses that represent the beginning


class LossDivergence(Rule):
    """The loss diverges even though the updates are of normal size.

    ## What it does
    In a watched run, the rule reports a training loss that ends far above both its initial and its lowest level.
    It also reports a loss that starts above 0, falls below 0, and keeps falling faster and faster.

    ## Why it is bad
    Training should lower the training loss. A loss diverges if the optimizer maximises instead of minimising, if a
    term of the loss has no lower bound, if the weights grow without bound, or if the data changes.

    ## Example
    ```python
    # left over from a reward
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, maximize=True)
    ```

    ## Instead
    ```python
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    ```

    ## Thresholds
    For a classifier trained on cross entropy, the final loss is the median cross entropy over the last quarter of
    the sampled steps. It must be at least twice the loss of a constant prediction, and at least 1.5 times both the
    initial and the lowest level. For any other loss, the run must have at least 40 steps, the loss must reach at
    least 100 times both its initial and its lowest level, and the norm of the weights must have tripled. A loss
    that ends as NaN or infinity must have risen to at least 1,000 times its initial level just before that. If a
    step changes the weights by 1% or more, `learning-rate-too-high` reports the run instead.

    A loss is reported as falling without bound if it begins above 0 and ends at least ten times as far below 0.
    From each quarter of the run to the next, the decrease must grow by a factor of at least 1.5.

    ## Known problems
    Some healthy losses rise, such as a generator's loss in adversarial training, or the loss in Q-learning while
    the value estimates grow.

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
            else f" Large updates are not the cause: a step changes a layer by only {update:.2g} of its norm."
        )
        return self.found(
            f"{loss_curve.describe('diverged', curve)}{not_the_updates}",
            fix=(
                "look for a wrong sign: maximize=True, or a minus sign before a term of the loss",
                "look for a loss term that has no lower bound",
                "check what changed in the data or in a schedule when the loss began to rise",
            ),
            evidence={"update_size": update, **vars(curve)},
            step=curve.since,
        )

    @check
    def from_fall(self, losses: LossHistory, verdicts: Verdicts) -> Finding | None:
        """Look for a loss that has no lower bound and falls ever more quickly."""
        values = losses.values
        if len(values) < FALLS or not np.isfinite(values).all() or not verdicts.trained_alone:
            return None
        began, quarters = float(np.median(values[:FIRST])), np.array_split(values, 4)
        levels = [began, *(float(np.median(quarter[-FIRST:])) for quarter in quarters)]
        fell = -np.diff(levels)
        if began <= 0 or levels[-1] > -FELL_BY * began or (fell[1:] < QUICKER * fell[:-1]).any():
            return None
        return self.found(
            f"The loss began at {began:.4g} and fell to {levels[-1]:.4g}, faster and faster: by {fell[-2]:,.4g} "
            f"in the third quarter of the run and by {fell[-1]:,.4g} in the last quarter. One of its terms "
            "has no lower bound, so training lowers that term instead of the others.",
            fix=(
                "check the sign of each term: a divergence or a penalty must be added, not subtracted",
                "look for a loss term that has no lower bound",
            ),
            evidence={"began": began, "ended": levels[-1], "fell": [float(one) for one in fell]},
            step=int(losses.steps[-1]),
        )
