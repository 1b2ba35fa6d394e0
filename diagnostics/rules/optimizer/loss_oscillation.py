"""See `LossOscillation`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.training import LossHistory, StepHistory, UpdateHistory
from diagnostics.rules.shared import loss_curve, update_size


class LossOscillation(Rule):
    """The loss of one and the same batch swings up and down and does not fall.

    ## What it does
    While a model is watched: follows the loss of a batch that comes again and again, and speaks up if it goes up
    and down from visit to visit without having fallen.

    ## Why it is bad
    Each step jumps over the minimum and lands on the other side, as high as before. In some direction the loss is
    curved so strongly that the step is too long for it, although it is short beside the weights. Inputs of very
    different scales, or a momentum near 1, do that.

    ## Example
    ```python
    model = nn.Linear(3, 1)                             # area in m², rooms, year of construction
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    ```

    ## Instead
    ```python
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    ```

    ## Thresholds
    A batch that came at least 100 times; over the second half of these its losses span, from the lowest tenth to
    the highest, at least half of their mean, turn round at 90% of the visits (of pure noise it would be two
    thirds), and their mean is not 10% below that of the first six. All are ours. Where steps change the weights
    by 1% or more, `learning-rate-too-high` speaks instead.

    ## Known problems
    Needs training that sees the same batch again and again: the whole data at once, or a loader that does not
    shuffle. Elsewhere a loss that swings because its batches differ looks the same, and nothing is said. A loop
    that hands over two different losses in turn, on the same batch, is reported.

    ## Sources
    Goh, "Why Momentum Really Works", Distill (2017), on steps and curvature.
    """

    severity = "warning"
    no_exhibit = "in the zoo's cages a loss that swings does so at a learning rate that is too high"

    @check
    def from_history(
        self, steps: StepHistory, losses: LossHistory, updates: UpdateHistory | None = None
    ) -> Finding | None:
        """Follow the batch that came most often."""
        course = loss_curve.oscillates(steps, losses)
        if course is None or update_size.large_updates(updates, course.since):
            return None
        update = update_size.update_size(updates, course.since)
        beside = "" if update is None else f", although they change a layer by only {update:.2g} of its size"
        return self.found(
            f"{loss_curve.in_words('oscillates', course)} The batches are not the reason, so the steps are: they "
            f"are too long for how the loss is curved{beside}.",
            fix=(
                "bring the inputs to mean 0 and standard deviation 1; if they are, lower the learning rate or the "
                "momentum"
            ),
            evidence={"update_size": update, **vars(course)},
            step=course.since,
        )
