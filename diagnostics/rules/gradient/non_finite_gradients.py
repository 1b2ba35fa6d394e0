"""See `NonFiniteGradients`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.training import GradientHistory
from diagnostics.text import nonfinite

LOCATE = "to find the module where the NaN or infinity first appears"


class NonFiniteGradients(MessageRule):
    """A gradient is NaN or infinite even though the model's output is finite.

    ## What it does
    In a watched run, the rule names the first step whose gradient is not finite. It runs that step again on a copy
    to find the module whose backward pass produces the NaN or infinity. If every module's backward pass is finite,
    the problem is in the loss.

    ## Why it is bad
    One update with such a gradient makes every affected weight NaN. The loss is still finite at that step, so the
    NaN shows up one step later, in a forward pass that did not cause it.

    ## Example
    ```python
    # at a == b the slope of the square root is infinite
    distance = (a - b).square().sum(-1).sqrt()
    ```

    ## Instead
    ```python
    distance = ((a - b).square().sum(-1) + 1e-12).sqrt()
    ```

    ## Thresholds
    None. A gradient is also treated as infinite if the square of its norm exceeds the largest float32 number.

    ## Known problems
    Gradients are read at the optimizer step, after any clipping, and clipping spreads a single NaN to all
    gradients. A loss scaler normally skips some steps because of an overflow, so skipped steps are reported only
    after 33 in a row.

    ## Sources
    PyTorch's notes, "Autograd mechanics" (gradients for non-differentiable functions);
    `torch.autograd.detect_anomaly`, which finds the operation that made the NaN, but makes each step several times
    slower.
    """

    severity = "error"
    causes = ("unchanged-parameters", *NO_LEARNING)

    @check
    def from_origin(self, origin: OriginFacts) -> Finding | None:
        """Name the step, and the module whose backward pass produced the value."""
        if origin.kind is None and origin.loss is None and origin.parameters:
            return self._unlocated(origin)
        if origin.kind is None:
            raise NotApplicable(
                f"needs a replay that reproduces the NaN, but {origin.reason or 'the replay did not'}"
            )
        if origin.kind != "gradient":
            return None
        finite = "The loss is finite" if origin.loss is not None else "The model's output is finite"
        if origin.loss is not None and origin.replayed:
            finite = "The model's output and the loss are finite"
        if origin.module is not None:
            where = f"the NaN or infinity first appears in the backward pass of {nonfinite.module(origin)}"
            fix = (
                "look in this module for a square root, norm, log, power or division whose derivative is infinite "
                "at 0, and add a small epsilon to its argument"
            )
        elif origin.replayed:
            where = (
                "the model's own backward pass is finite too, so the NaN or infinity originates in the backward "
                "pass of the loss"
            )
            fix = (
                "look for a square root, norm, log or division whose derivative is infinite at 0, in the loss or "
                "between the model's output and the loss"
            )
        else:
            where = "the origin of the NaN or infinity is unknown"
            fix = f"{LOCATE}, run with watch(model, optimizer, every=1)"
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
        import numpy as np

        if not np.isfinite(gradients.norms).all():
            raise NotApplicable("needs a replay of the step with the first NaN or infinity")
        return None

    def _unlocated(self, origin: OriginFacts) -> Finding:
        return self.found(
            f"{_seen(origin)} It is unknown whether the loss was finite. {nonfinite.how_known(origin)}",
            fix=f"{LOCATE}, run with watch(model, optimizer, every=1) and watch.step(loss)",
            evidence=nonfinite.evidence(origin) | {"loss": None},
            step=origin.step,
        )


def _seen(origin: OriginFacts) -> str:
    which = nonfinite.parameters(origin)
    seen = f"At step {origin.step}, the gradient of {which} is NaN or infinite."
    if not origin.left_out:
        return seen
    return f"{seen} Because of this, the loss scaler skipped {origin.left_out} steps in a row."
