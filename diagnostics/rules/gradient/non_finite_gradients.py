"""See `NonFiniteGradients`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.training import GradientHistory
from diagnostics.text import nonfinite


class NonFiniteGradients(Rule):
    """A gradient is NaN or infinite although the model's output is not.

    ## What it does
    While a model is watched: names the first step whose gradient is not finite, and the module in whose backward
    pass that begins, found by running the step again on a copy. If the model's own backward pass is finite, it
    came in from the loss.

    ## Why it is bad
    One step on such a gradient makes every weight that it reaches NaN. The loss is still finite in that step,
    so the NaN is seen one step later, in a forward pass that has nothing to do with it.

    ## Example
    ```python
    distance = (a - b).square().sum(-1).sqrt()      # at a == b the slope of the square root is infinite
    ```

    ## Instead
    ```python
    distance = ((a - b).square().sum(-1) + 1e-12).sqrt()
    ```

    ## Thresholds
    None. A gradient counts as infinite, too, where the square of its norm passes the largest float32 number.

    ## Known problems
    Gradients are seen as the optimizer's step sees them: after clipping, which spreads one NaN to all of them.
    Steps that a loss scaler leaves out because of an overflow are how it works, and are reported only from 33 in a
    row on: by then it has halved its scale so often that the scale is not the reason. They are not noticed where
    gradients are set to zero instead of None. The step is run again with a gradient of ones at the model's output,
    not with that of the loss.

    ## Sources
    PyTorch's documentation, "Autograd mechanics", gradients for non-differentiable functions;
    `torch.autograd.detect_anomaly`, which finds the operation at several times the cost of a step.
    """

    severity = "error"
    causes = ("unchanged-parameters", *NO_LEARNING)
    no_exhibit = "where the gradient breaks before the loss does depends on the very numbers of a step"

    @check
    def from_origin(self, origin: OriginFacts) -> Finding | None:
        """Name step and module, where it began in the backward pass."""
        if origin.kind is None and origin.loss is None and origin.parameters:
            return self._unlocated(origin)
        if origin.kind is None:
            raise NotApplicable(f"needs the step run again; {origin.reason or 'that showed nothing'}")
        if origin.kind != "gradient":
            return None
        finite = "The loss is finite" if origin.loss is not None else "The model's output is finite"
        if origin.loss is not None and origin.replayed:
            finite = "The model's output and the loss are finite"
        if origin.module is not None:
            where = f"it begins in the backward pass of {nonfinite.module(origin)}".rstrip(",")
            fix = (
                "look in this module for a square root, norm, log, power or division whose slope is infinite "
                "at 0; add a small number inside it"
            )
        elif origin.replayed:
            where = "the model's own backward pass is finite, so it comes in from the loss"
            fix = (
                "look in the loss, and between the model's output and it, for a square root, norm, log or "
                "division whose slope is infinite at 0"
            )
        else:
            where = "where it begins is not known"
            fix = "watch(model, optimizer, every=1) finds the module"
        table = nonfinite.table(origin.frames)
        return self.found(
            f"{_seen(origin)} {finite}; {where}. {nonfinite.how_known(origin)}" + (f"\n{table}" if table else ""),
            fix=fix,
            evidence=nonfinite.evidence(origin) | {"loss": origin.loss},
            step=origin.step,
        )

    @check
    def from_history(self, gradients: GradientHistory) -> Finding | None:
        """Clear a run whose gradients stayed finite."""
        if not np.isfinite(gradients.norms).all():
            raise NotApplicable("needs the step that went wrong, run again")
        return None

    def _unlocated(self, origin: OriginFacts) -> Finding:
        return self.found(
            f"{_seen(origin)} Whether the loss was is not known. {nonfinite.how_known(origin)}",
            fix="watch(model, optimizer, every=1) with watch.step(loss) says where it begins",
            evidence=nonfinite.evidence(origin) | {"loss": None},
            step=origin.step,
        )


def _seen(origin: OriginFacts) -> str:
    which = nonfinite.parameters(origin)
    seen = f"In step {origin.step} the gradient of {which} is NaN or infinite."
    if not origin.left_out:
        return seen
    times = f"That was so {origin.left_out} times in a row"
    return f"{seen} {times}, and each of these steps was left out for it, as a loss scaler does."
