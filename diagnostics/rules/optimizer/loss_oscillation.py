"""See `LossOscillation`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.training import LossHistory, StepHistory, UpdateHistory
from diagnostics.rules.shared import loss_curve, update_size


class LossOscillation(Rule):
    """The loss on a repeated batch oscillates and does not fall.

    ## What it does
    In a watched run, the rule follows the loss of a batch that recurs, and reports a loss that alternately
    rises and falls without decreasing overall.

    ## Why it is bad
    Each update jumps over the minimum and lands on the other side, where the loss is as high as before. In some
    direction, the curvature of the loss is too high for this step size. Typical causes are inputs on very
    different scales, and a momentum near 1.

    ## Example
    ```python
    model = nn.Linear(3, 1)  # area in m², rooms, year of construction
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    ```

    ## Instead
    ```python
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    ```

    ## Thresholds
    The batch must have occurred at least 100 times. Three things must hold for the second half of its losses:

    - The range of the losses, from the 10th to the 90th percentile, is at least half of their mean.
    - The loss reverses direction at least 90% of the times the batch recurs. Pure noise reverses two thirds of the
      time.
    - The mean of the losses is at least 90% of the mean of the batch's first six losses.

    If updates change the weights by 1% or more, `learning-rate-too-high` reports the run instead.

    ## Known problems
    The rule needs a batch that is repeated, as in full-batch training or with a loader that does not shuffle. A
    loop that alternates between two different losses on the same batch is wrongly reported.

    ## Sources
    Goh, "Why Momentum Really Works", Distill (2017), on steps and curvature.
    """

    severity = "warning"

    @check
    def from_history(
        self, steps: StepHistory, losses: LossHistory, updates: UpdateHistory | None = None
    ) -> Finding | None:
        """Follow the batch that occurred most often."""
        curve = loss_curve.oscillates(steps, losses)
        if curve is None or update_size.large_updates(updates, curve.since):
            return None
        update = update_size.update_size(updates, curve.since)
        small = (
            "" if update is None else f", even though each one changes a layer by only {update:.2g} of its norm"
        )
        return self.found(
            f"{loss_curve.describe('oscillates', curve)} Since the batch is always the same, the updates "
            f"must be too large for the curvature of the loss{small}.",
            fix=(
                "standardise the inputs to mean 0 and standard deviation 1",
                "lower the learning rate",
                "lower the momentum",
            ),
            evidence={"update_size": update, **vars(curve)},
            step=curve.since,
        )
