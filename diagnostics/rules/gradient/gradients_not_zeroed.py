"""See `GradientsNotZeroed`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.training import GradientHistory, StepHistory

ENOUGH = 4  # steps checked: fewer may be a loop that is still being set up
MOSTLY = 0.9  # of them; zeroing once an epoch is as wrong as never zeroing


class GradientsNotZeroed(Rule):
    """Gradients are not zeroed between optimizer steps, so they accumulate.

    ## What it does
    In a watched run, the rule checks whether the gradients of the optimizer's parameters are None or all zero at
    the start of each backward pass that follows an optimizer step. It fires if they are almost never zeroed.

    ## Why it is bad
    `backward()` adds to the gradients that are already there. Each step then follows the sum of all gradients
    since the last `zero_grad()`, or since training began, and overshoots every minimum. The loss may fall at
    first, and no exception is raised.

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
    At least 4 steps must have been checked, and at least 90% of them must have started with gradients that were
    not zeroed. Gradient accumulation (several backward passes per step) is not reported.

    ## Known problems
    A loop that scales gradients down instead of zeroing them, as a form of momentum, is reported too.

    ## Sources
    PyTorch's documentation for `torch.optim.Optimizer.zero_grad` and its recipe "Zeroing out gradients in
    PyTorch".
    """

    severity = "error"
    causes = ("learning-rate-too-high", *TOO_LARGE_STEPS)

    @check
    def from_history(self, steps: StepHistory, gradients: GradientHistory | None = None) -> Finding | None:
        """Count the steps whose backward pass added to the gradients of the previous step."""
        seen = steps.gradients_zeroed >= 0
        left = steps.gradients_zeroed == 0
        if seen.sum() < ENOUGH:
            raise NotApplicable(
                f"needs at least {ENOUGH} steps whose gradients were checked before the backward pass"
            )
        if left.sum() < max(ENOUGH, MOSTLY * seen.sum()):
            return None
        first = int(steps.steps[left][0])
        norms = np.zeros(0) if gradients is None else gradients.norms[np.isfinite(gradients.norms)]
        grown = ""
        if norms.size and norms[-1] > 2 * norms[0]:
            grown = f" The gradient norm went from {norms[0]:.3g} to {norms[-1]:.3g}."
        never = left.sum() == seen.sum()
        since = "so far" if never else "since the last zero_grad()"
        steps_checked = f"all {seen.sum()}" if never else f"{left.sum()} of the {seen.sum()}"
        return self.found(
            f"In {steps_checked} steps checked, the gradients of the previous step were not "
            "zeroed before the backward pass, so the new gradients were added to the old ones. Each step "
            f"uses the sum of all gradients {since}.{grown} This is not gradient accumulation: the "
            "optimizer took a step in between.",
            fix="optimizer.zero_grad()  # once for each optimizer.step(), before the backward pass",
            evidence={
                "steps_seen": int(seen.sum()),
                "steps_not_zeroed": int(left.sum()),
                "first_norm": float(norms[0]) if norms.size else None,
                "last_norm": float(norms[-1]) if norms.size else None,
            },
            step=first,
        )
