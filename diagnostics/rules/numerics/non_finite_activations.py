"""See `NonFiniteActivations`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.training import GradientHistory
from diagnostics.text import nonfinite


class NonFiniteActivations(MessageRule):
    """A module returns NaN or inf for finite input.

    ## What it does
    In a watched run, when a loss or a gradient is not finite, the rule repeats the forward pass of that step on a
    copy, with the same weights, batch and random state. The finding names the first module whose input is finite
    and whose output is not, and gives the value ranges of the modules before it.

    ## Why it is bad
    NaN propagates from that module through every later layer to the loss, and from the loss into every weight. A
    NaN loss a few steps later does not show where the NaN originated.

    ## Example
    ```python
    with torch.autocast("cuda", dtype=torch.float16):
        hidden = self.up(x) * torch.nn.functional.silu(self.gate(x))   # exceeds 65504
        return self.down(hidden)
    ```

    ## Instead
    ```python
    with torch.autocast("cuda", enabled=False):  # this part in float32
        hidden = self.up(x.float()) * torch.nn.functional.silu(self.gate(x.float()))
        return self.down(hidden)
    ```

    ## Thresholds
    None, except for -inf, which masks contain on purpose: it is reported only if a layer with weights returns it
    for finite input.

    ## Known problems
    For a model of more than 512 MiB, the weights from before the step are not saved, and by the time the NaN is
    noticed, it has usually spread to all weights. `watch(..., every=1)` notices a NaN immediately.

    ## Sources
    Hugging Face Transformers, "Debugging", underflow and overflow detection (`DebugUnderflowOverflow`), for the
    format of the ranges; PyTorch's documentation on automatic mixed precision.
    """

    severity = "error"
    causes = ("non-finite-loss", "non-finite-gradients", *NO_LEARNING)

    @check
    def from_origin(self, origin: OriginFacts) -> Finding | None:
        """Name the module that returned the first non-finite value."""
        if origin.kind is None:
            raise NotApplicable(
                f"needs a replay that reproduces the NaN, but {origin.reason or 'the replay did not'}"
            )
        if origin.kind != "forward" or nonfinite.overflowed(origin):  # half-precision-overflow reports the latter
            return None
        last = origin.frames[-1] if origin.frames else None
        limit = nonfinite.LIMITS.get(last.dtype or "") if last is not None else None
        overflow = last is not None and last.outputs is not None and (last.outputs.inf or last.outputs.minus_inf)
        why = ""
        if overflow and last is not None and limit is not None:
            largest = f"{limit:,.0f}" if limit < 1e6 else f"{limit:.3g}"
            why = f" The result exceeds the largest {last.dtype} value, {largest}."
        full = last is not None and last.dtype not in ("float16", "bfloat16")
        table = nonfinite.table(origin.frames)
        return self.found(
            f"At step {origin.step}, the first NaN or inf came from {nonfinite.module(origin)}, although its "
            f"input was finite.{why}{nonfinite.examples(origin)} {nonfinite.how_known(origin)}"
            + (f"\n{table}" if table else ""),
            fix=(
                *(() if full else ("run this module in float32: torch.autocast(device, enabled=False)",)),
                "keep the module's inputs small: normalise them, clip the gradients, or lower the learning rate",
            )
            if overflow
            else "look in this module for log(0), the log or square root of a negative number, 0 / 0, or "
            "inf - inf, as in a softmax with every position masked",
            evidence=nonfinite.evidence(origin),
            step=origin.step,
        )

    @check
    def from_history(self, gradients: GradientHistory) -> Finding | None:
        """Clear a run whose gradients stayed finite."""
        import numpy as np

        if not np.isfinite(gradients.norms).all():
            raise NotApplicable("needs a replay of the step with the first NaN or infinity")
        return None
