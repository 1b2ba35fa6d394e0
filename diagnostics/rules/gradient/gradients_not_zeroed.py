"""See `GradientsNotZeroed`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.training import GradientHistory, StepHistory

ENOUGH = 4  # steps looked at: fewer could be a loop that is only being set up
MOSTLY = 0.9  # of them; a loop that zeroes once an epoch is as wrong as one that never does


class GradientsNotZeroed(Rule):
    """Gradients of earlier steps are still there when the next backward pass begins.

    ## What it does
    While a model is watched: looks, at the start of a backward pass that follows an optimizer step, whether the
    gradients that the optimizer holds are gone: None, or all zero. Speaks up if they hardly ever are.

    ## Why it is bad
    `backward()` adds to the gradients that are there. Each step then follows the sum of all gradients since
    training began, as with a momentum of 1: it runs on in the directions of long ago, past every minimum. The
    loss may fall at first, and nothing fails.

    ## Example
    ```python
    for batch, target in loader:
        loss_fn(model(batch), target).backward()
        optimizer.step()
    ```

    ## Instead
    ```python
    for batch, target in loader:
        optimizer.zero_grad()
        loss_fn(model(batch), target).backward()
        optimizer.step()
    ```

    ## Thresholds
    At least 4 steps looked at, and 90% of them without zeroed gradients. Both are ours. Several backward passes
    for one step are a plan, gradient accumulation, and no alarm: what counts is what is left after a step.

    ## Known problems
    A loop that scales gradients down by hand instead of zeroing them, as a momentum of its own, is reported.
    With several optimizers only the parameters of the one that steps first are looked at.

    ## Sources
    PyTorch's documentation of `torch.optim.Optimizer.zero_grad` and its recipe "Zeroing out gradients in PyTorch".
    """

    severity = "error"
    causes = ("learning-rate-too-high", *TOO_LARGE_STEPS)

    @check
    def from_history(self, steps: StepHistory, gradients: GradientHistory | None = None) -> Finding | None:
        """Count the steps that began on the gradients of the step before."""
        seen = steps.gradients_zeroed >= 0
        left = steps.gradients_zeroed == 0
        if seen.sum() < ENOUGH:
            raise NotApplicable(f"needs {ENOUGH} steps whose backward passes were seen to begin")
        if left.sum() < max(ENOUGH, MOSTLY * seen.sum()):
            return None
        first = int(steps.steps[left][0])
        norms = np.zeros(0) if gradients is None else gradients.norms[np.isfinite(gradients.norms)]
        grown = ""
        if norms.size and norms[-1] > 2 * norms[0]:
            grown = f" The norm of the gradient went from {norms[0]:.3g} to {norms[-1]:.3g}."
        return self.found(
            f"In {left.sum()} of the {seen.sum()} steps looked at, the gradients of the step before were still "
            "there when the backward pass began, and it added to them. Each step follows the sum of all gradients "
            f"so far.{grown} This is no accumulation of several batches for one step: the optimizer had stepped "
            "in between.",
            fix="optimizer.zero_grad()  # once for each optimizer.step(), before the backward pass",
            evidence={
                "steps_seen": int(seen.sum()),
                "steps_not_zeroed": int(left.sum()),
                "first_norm": float(norms[0]) if norms.size else None,
                "last_norm": float(norms[-1]) if norms.size else None,
            },
            step=first,
        )
