"""See `NegativeLearningRate`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.training import StepHistory


class NegativeLearningRate(Rule):
    """The schedule makes the learning rate negative.

    ## What it does
    Checks the learning rate of every parameter group at every step.

    ## Why it is bad
    With a negative learning rate, each step follows the gradient uphill, so the loss rises. Usually the schedule
    has a linear factor without a lower bound, `1 - step / length`, and runs past its length because it is stepped
    once per batch instead of once per epoch.

    ## Example
    ```python
    scheduler = LambdaLR(optimizer, lambda epoch: 1 - epoch / 20)
    for batch in loader:
        ...
        scheduler.step()        # once per batch: negative after 20 batches
    ```

    ## Instead
    ```python
    scheduler = LambdaLR(optimizer, lambda epoch: max(0.0, 1 - epoch / 20))
    for epoch in range(20):
        for batch in loader:
            ...
        scheduler.step()
    ```

    ## Thresholds
    None.

    ## Known problems
    A script that deliberately performs gradient ascent with a negative rate is also reported.

    ## Sources
    ziqi-jin/finetune-anything, issue 57; the documentation for `torch.optim.lr_scheduler.LambdaLR`.
    """

    severity = "error"
    causes = ("learning-rate-too-high", *TOO_LARGE_STEPS)
    FIXES = {
        "torch": (
            "LambdaLR(optimizer, lambda step: max(0.0, 1 - step / length))",
            "call scheduler.step() once per epoch if the schedule's length is in epochs",
        ),
        "keras": "use tf.maximum(rate, 0.0) in the schedule, and specify its length in batches",
    }

    @check
    def from_steps(self, steps: StepHistory) -> Finding | None:
        """Find the first step at a rate below 0."""
        rates = steps.learning_rates
        if not np.isfinite(rates).any():
            raise NotApplicable("needs the learning rate at each step")
        below = np.flatnonzero((rates < 0).any(axis=1))
        if not len(below):
            return None
        first, lowest = int(steps.steps[below[0]]), float(np.nanmin(rates))
        return self.found(
            f"The learning rate is negative from step {first:,} of {steps.total_steps:,} onwards and falls to "
            f"{lowest:.3g}. A step with a negative learning rate moves up the gradient, so the loss rises. A "
            "schedule factor such as 1 - step / length becomes negative once step exceeds length.",
            evidence={"first_step": first, "lowest_rate": lowest, "total_steps": steps.total_steps},
            step=first,
        )
