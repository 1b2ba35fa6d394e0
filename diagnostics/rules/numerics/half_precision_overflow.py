"""See `HalfPrecisionOverflow`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NAN, NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.facts.training import RangeFacts
from diagnostics.text import nonfinite

NEAR = 0.5  # of the largest number: one doubling away from it
NAMED = 4  # modules named in the message; the evidence holds them all


class HalfPrecisionOverflow(Rule):
    """An activation grows past, or close to, the largest number of float16.

    ## What it does
    While a model is watched: once the loss or a gradient is not finite, that step is run again on a copy, to find
    the module that made it (see `non-finite-activations`). If that was in half precision, the same pass is run
    once more in float32. What is finite there, and larger than the half precision's largest number, has
    overflowed. As long as all is finite, the largest activations of chosen steps are held against that number.

    ## Why it is bad
    float16 ends at 65,504. The product of 300 and 300 is infinity, infinity minus infinity is NaN, and one step
    later NaN is in every weight. Gated feed-forward blocks, attention scores without a scale, and models that
    were trained in bfloat16 do this. The loss shows it layers later. A loss scaler does not help: it leaves out
    every step from then on.

    ## Example
    ```python
    with torch.autocast("cuda", dtype=torch.float16):
        hidden = self.act(self.gate(x)) * self.up(x)               # passes 65504
        return self.down(hidden)
    ```

    ## Instead
    ```python
    with torch.autocast("cuda", enabled=False):                    # this part in float32
        x = x.float()
        hidden = self.act(self.gate(x)) * self.up(x)
        return self.down(hidden)
    ```

    ## Thresholds
    Infinite in half precision and finite, but too large, in float32: an error. Half of the largest number or
    more, in the output of a module in float16: a warning. The half is ours: one doubling is left. Numbers that
    equal the limit, or -inf, do not count as near, since masks put them there on purpose.

    ## Known problems
    Whether a number fits into float32 is not known for a model that insists on its dtype; then only
    `non-finite-activations` speaks. Outputs of modules alone are held against the limit: a product between two
    modules is seen near it only where a module, such as dropout, passes it on. bfloat16 reaches as far as float32;
    what is too large for it is no matter of half precision.

    ## Sources
    IEEE 754 (binary16 ends at 65,504); Hugging Face Transformers, "Debugging", underflow and overflow detection,
    whose example is the gated feed-forward block of mT5; transformers pull request 10956, on T5 in float16.
    """

    severity = "error"
    causes = (*NAN, *NO_LEARNING)

    @check
    def from_origin(self, origin: OriginFacts) -> Finding | None:
        """Name the module whose numbers did not fit, where the run has broken on one."""
        if origin.kind is None:
            raise NotApplicable(f"needs the step run again; {origin.reason or 'that showed nothing'}")
        over = origin.overflow
        if over is None or not nonfinite.overflowed(origin):
            return None
        place = over.module or "the model"
        whose = "its output" if over.side == "output" else f"what '{place}' received"
        if over.side == "output" and over.module != origin.module:
            whose = f"the output of '{place}'"
        table = nonfinite.table(origin.frames)
        return self.found(
            f"In step {origin.step}, {nonfinite.module(origin)} passed {over.limit:,.0f}, the largest number "
            f"of {over.dtype}: run again in float32, {whose} reaches {over.highest:,.0f}. In {over.dtype} that is "
            f"infinite, and all that is computed from it infinite or NaN.{nonfinite.examples(origin)} "
            f"{nonfinite.how_known(origin)}" + (f"\n{table}" if table else ""),
            fix=f"compute {_named(origin.module)} in float32: torch.autocast(..., enabled=False) around it, and "
            ".float() on what goes in; or train in bfloat16, which reaches as far as float32",
            evidence=nonfinite.evidence(origin)
            | {
                "dtype": over.dtype,
                "limit": over.limit,
                "seen_at": over.module,
                "seen_in": over.side,
                "highest_in_float32": over.highest,
            },
            step=origin.step,
        )

    @check
    def from_ranges(self, ranges: RangeFacts) -> Finding | None:
        """Look for modules that came close, while all is finite."""
        near = ranges.nearest
        if near is None or ranges.nearest_steps is None or np.isnan(near).all():
            raise NotApplicable("needs a module that computes in float16")
        close = np.flatnonzero(near >= NEAR * ranges.limits)
        if not close.size:
            return None
        first = int(close[0])
        limit = float(ranges.limits[first])
        share = 100 * near[first] / limit
        more = [f"{ranges.modules[i] or 'model'} {near[i]:,.0f}" for i in close[1:]]
        if len(more) > NAMED:
            more = [*more[:NAMED], f"{len(more) - NAMED} more"]
        others = f" So close as well: {', '.join(more)}." if more else ""
        return self.found(
            f"The activations of '{ranges.modules[first] or 'model'}' reached {near[first]:,.0f} in step "
            f"{ranges.nearest_steps[first]}, {share:.0f} % of {limit:,.0f}, where float16 ends. What grows past "
            f"that is infinite, and the loss NaN.{others} Seen in {len(ranges.steps)} of the steps.",
            fix="compute this part in float32: torch.autocast(..., enabled=False) around it, and .float() on what "
            "goes in; or train in bfloat16, which reaches as far as float32",
            evidence={
                "limit": limit,
                "highest": {ranges.modules[i]: float(near[i]) for i in close},
                "steps": {ranges.modules[i]: int(ranges.nearest_steps[i]) for i in close},
            },
            severity="warning",
            step=int(ranges.nearest_steps[first]),
        )


def _named(module: str | None) -> str:
    return f"'{module}'" if module else "this part"
