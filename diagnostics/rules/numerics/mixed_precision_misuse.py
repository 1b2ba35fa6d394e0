"""See `MixedPrecisionMisuse`."""

from __future__ import annotations

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.calls import ScaledClipFacts, StepOrderFacts

STEPS = 3  # with clipped gradients: fewer may be a test
MOSTLY = 0.9  # of these steps
ENOUGH = 8  # steps on gradients of a scaled loss
SMALL = 0.01  # of the scale: a limit that the script multiplied by the scale is not that small


class MixedPrecisionMisuse(MessageRule):
    """The gradient scaler or autocast is misused: PyTorch raises an error, or scaled gradients are clipped.

    ## What it does
    Recognises errors raised by `GradScaler` and under autocast, and explains which rule of mixed precision is
    broken. In a watched run, it checks whether gradients are clipped before `scaler.unscale_`, and whether the
    optimizer steps directly on the gradients of a scaled loss.

    ## Why it is bad
    float16 cannot represent numbers below 6e-8. The loss is therefore scaled up before the backward pass, and the
    gradients are scaled back down before the step. This works only if the parameters are float32, the loss was
    scaled, and the gradients are unscaled once per step. A clipping limit such as 1.0 is tiny compared with scaled
    gradients: at a scale of 65,536, gradients that are clipped before they are unscaled end up at 1/65,536 of the
    limit.

    ## Example
    ```python
    model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float16)
    trainer = Trainer(model, TrainingArguments(..., fp16=True))
    ```

    ## Instead
    ```python
    model = AutoModelForCausalLM.from_pretrained(name)
    trainer = Trainer(model, TrainingArguments(..., fp16=True))
    ```

    ## Thresholds
    If PyTorch has raised an error, there is no threshold. Steps on the gradients of a scaled loss are reported as
    a warning if there are at least 8 steps and 8 scaled losses but no call to `scaler.step` or `scaler.unscale_`,
    and the script does not read `.grad`. Clipping is reported as a warning if gradients were clipped in at least 3
    scaler steps and the limit is at most 1% of the scale. In at least 90% of these steps, the gradients must have
    been clipped while they were still scaled, and their norm must have been above the limit.

    ## Known problems
    Gradients clipped by hand, as with `p.grad.clamp_()`, are not detected.

    ## Sources
    PyTorch's "Automatic mixed precision package" and "Automatic mixed precision examples" (gradient clipping,
    several optimizers).
    """

    severity = "error"
    causes = ("learning-rate-too-high", *TOO_LARGE_STEPS)

    @check
    def from_steps(self, order: StepOrderFacts) -> Finding | None:
        """Check whether an optimizer steps on gradients that were never divided by the scale."""
        if min(order.steps, order.scaled) < ENOUGH:
            raise NotApplicable(f"needs at least {ENOUGH} steps and {ENOUGH} losses scaled by a loss scaler")
        if order.unscaled:
            return None
        return self.found(
            f"`scaler.scale` has scaled {order.scaled:,} losses, but neither `scaler.step` nor "
            f"`scaler.unscale_` was ever called. So the {order.steps:,} optimizer steps used gradients multiplied "
            "by the scale factor (initially 65,536), and steps with overflows were not skipped.",
            fix="scaler.step(optimizer); scaler.update()  # instead of optimizer.step()",
            evidence={"scaled": order.scaled, "steps": order.steps},
            severity="warning",
        )

    @check
    def from_clips(self, clips: ScaledClipFacts) -> Finding | None:
        """Check whether gradients were clipped before they were divided by the scale."""
        import numpy as np

        if clips.steps < STEPS:
            raise NotApplicable(f"needs at least {STEPS} steps with clipped gradients from a scaled loss")
        if clips.scaled < MOSTLY * clips.steps:
            return None
        scale = float(np.median(clips.scales))
        known = np.isfinite(clips.norms)
        clipped = clips.norms[known] > clips.limit
        if clips.limit > SMALL * scale or (known.any() and clipped.mean() < MOSTLY):
            return None
        norm = float(np.median(clips.norms[known])) if known.any() else None
        found = (
            f" The gradient norm was {norm:.3g} ({norm / scale:.3g} without the scale), so clipping reduced the "
            f"unscaled norm to {clips.limit / scale:.2g}."
            if norm is not None
            else f" After clipping, no unscaled gradient is above {clips.limit / scale:.2g}."
        )
        return self.found(
            f"`{clips.function}` was called {clips.scaled:,} times on gradients that the loss scaler had "
            f"multiplied by {scale:,.0f}, but the clipping limit of {clips.limit:g} is meant for unscaled "
            f"gradients.{found}",
            fix=f"scaler.unscale_(optimizer)  # before {clips.function}",
            evidence={
                "function": clips.function,
                "limit": clips.limit,
                "steps": clips.steps,
                "clipped_while_scaled": clips.scaled,
                "scale": scale,
                "scaled_norm": norm,
            },
            where=clips.where,
            severity="warning",
        )
