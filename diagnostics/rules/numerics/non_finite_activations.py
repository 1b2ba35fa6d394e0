"""See `NonFiniteActivations`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.training import GradientHistory
from diagnostics.text import nonfinite


class NonFiniteActivations(Rule):
    """A module makes NaN or inf from finite input.

    ## What it does
    While a model is watched: once a loss or a gradient is not finite, the forward pass of that very step is run
    again on a copy, with the weights, the batch and the random state it had. Named is the first module, in order
    of execution, whose input was finite and whose output is not, with the ranges of the modules before it.

    ## Why it is bad
    From there NaN goes through every layer to the loss, and from the loss into every weight. What is seen, a
    NaN loss a few steps later, says nothing about where it began.

    ## Example
    ```python
    with torch.autocast("cuda", dtype=torch.float16):
        hidden = self.up(x) * torch.nn.functional.silu(self.gate(x))   # passes 65504
        return self.down(hidden)
    ```

    ## Instead
    ```python
    with torch.autocast("cuda", enabled=False):                        # this part in float32
        hidden = self.up(x.float()) * torch.nn.functional.silu(self.gate(x.float()))
        return self.down(hidden)
    ```

    ## Thresholds
    None. A mask's -inf is no alarm: what counts is NaN and positive infinity, and -inf only where a layer with
    weights of its own makes it from finite input.

    ## Known problems
    Without the weights from before the step (a model of more than 512 MiB) only the model as it was when the
    NaN was noticed can be searched, and mostly all of it is NaN by then. `watch(..., every=1)` notices at once.
    Operations that are no module count for the module in whose `forward` they stand. Random numbers that do not
    come from PyTorch are not repeated.

    ## Sources
    Hugging Face Transformers, "Debugging", underflow and overflow detection (`DebugUnderflowOverflow`), for the
    form of the ranges; PyTorch's documentation of automatic mixed precision.
    """

    severity = "error"
    causes = ("non-finite-loss", "non-finite-gradients", *NO_LEARNING)
    no_exhibit = "in cage 11, where a half overflows, the cause has a rule of its own: half-precision-overflow"

    @check
    def from_origin(self, origin: OriginFacts) -> Finding | None:
        """Name the module, where one made it."""
        if origin.kind is None:
            raise NotApplicable(f"needs the step run again; {origin.reason or 'that showed nothing'}")
        if origin.kind != "forward" or nonfinite.overflowed(origin):  # half-precision-overflow says the latter
            return None
        last = origin.frames[-1] if origin.frames else None
        limit = nonfinite.LIMITS.get(last.dtype or "") if last is not None else None
        overflow = last is not None and last.outputs is not None and (last.outputs.inf or last.outputs.minus_inf)
        why = ""
        if overflow and last is not None and limit is not None:
            why = f" {last.dtype} ends at {limit:.3g}, and this went past it."
        full = last is not None and last.dtype not in ("float16", "bfloat16")
        table = nonfinite.table(origin.frames)
        return self.found(
            f"In step {origin.step}, {nonfinite.module(origin)} was the first to make NaN or inf from finite "
            f"input.{why}{nonfinite.examples(origin)} {nonfinite.how_known(origin)}"
            + (f"\n{table}" if table else ""),
            fix=("" if full else "compute this part in float32 (torch.autocast with enabled=False), or ")
            + "bound what goes in: normalise it, clip the gradients, lower the learning rate that lets the "
            "weights grow"
            if overflow
            else "look in this module for a log or square root of 0 or less, a 0 / 0, and an inf - inf, as in a "
            "softmax over nothing but masked places",
            evidence=nonfinite.evidence(origin),
            step=origin.step,
        )

    @check
    def from_history(self, gradients: GradientHistory) -> Finding | None:
        """Clear a run in which everything stayed finite."""
        if not np.isfinite(gradients.norms).all():
            raise NotApplicable("needs the step that went wrong, run again")
        return None
