"""See `HalfPrecisionOverflow`."""

from __future__ import annotations

from diagnostics.engine.causality import NAN, NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.layers import RangeFacts
from diagnostics.facts.nonfinite import OriginFacts
from diagnostics.text import nonfinite
from diagnostics.text.join import count_of, listed

NEAR = 0.5  # of the largest number: a factor of 2 below it
NAMED = 4  # modules named in the message; the evidence holds them all
BFLOAT16 = "train in bfloat16, which has the same range as float32"


class HalfPrecisionOverflow(MessageRule):
    """An activation exceeds, or nearly exceeds, the largest float16 number.

    ## What it does
    In a watched run, if the loss or a gradient is not finite, the rule finds the module where the problem began
    (see `non-finite-activations`) and repeats its pass in float32. A value has overflowed if it is finite in
    float32, but larger than the largest half-precision number. As long as all values are finite, the rule compares
    the largest activations at sampled steps with the largest half-precision number.

    ## Why it is bad
    The largest float16 number is 65,504. In float16, 300 times 300 is infinity, infinity minus infinity is NaN,
    and one step later every weight is NaN. Gated feed-forward blocks, unscaled attention scores, and models that
    were trained in bfloat16 often overflow. A loss scaler does not help: once the activations overflow, it skips
    every step.

    ## Example
    ```python
    with torch.autocast("cuda", dtype=torch.float16):
        hidden = self.act(self.gate(x)) * self.up(x)               # exceeds 65504
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
    The finding is an error if a value that is infinite in half precision is finite in float32, but too large for
    half precision. The finding is a warning if a module's float16 output reaches half of the largest float16
    number. Values equal to the largest number, and -inf, are ignored, because masks contain them on purpose.

    ## Known problems
    If the model cannot be run in float32, only `non-finite-activations` is reported. An overflow in a product
    computed between two modules may be missed.

    ## Sources
    IEEE 754 (the largest binary16 number is 65,504); Hugging Face Transformers, "Debugging", underflow and
    overflow detection, whose example is the gated feed-forward block of mT5; transformers pull request 10956, on
    T5 in float16.
    """

    severity = "error"
    causes = (*NAN, *NO_LEARNING)

    @check
    def from_origin(self, origin: OriginFacts) -> Finding | None:
        """Name the module whose values overflowed."""
        if origin.kind is None:
            raise NotApplicable(
                f"needs a replay that reproduces the overflow, but {origin.reason or 'the replay did not'}"
            )
        over = origin.overflow
        if over is None or not nonfinite.overflowed(origin):
            return None
        place = over.module or "the model"
        whose = "its output" if over.side == "output" else f"the input of '{place}'"
        if over.side == "output" and over.module != origin.module:
            whose = f"the output of '{place}'"
        table = nonfinite.table(origin.frames)
        return self.found(
            f"At step {origin.step}, {nonfinite.module(origin)} exceeded {over.limit:,.0f}, the largest "
            f"{over.dtype} value: in float32, {whose} reaches {over.highest:,.0f}. In {over.dtype}, this "
            "becomes infinite, and everything computed from it is infinite or "
            f"NaN.{nonfinite.examples(origin)} {nonfinite.how_known(origin)}" + (f"\n{table}" if table else ""),
            fix=(_in_float32(f"'{origin.module}'" if origin.module else "this part"), BFLOAT16),
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
        """Look for modules whose finite outputs came close to the limit."""
        import numpy as np

        near = ranges.nearest
        if near is None or ranges.nearest_steps is None or np.isnan(near).all():
            raise NotApplicable("needs a module that computes in float16")
        close = np.flatnonzero(near >= NEAR * ranges.limits)
        if not close.size:
            return None
        first = int(close[0])
        limit = float(ranges.limits[first])
        share = 100 * near[first] / limit
        more = [f"{ranges.modules[i] or 'model'} ({near[i]:,.0f})" for i in close[1:]]
        others = f" Also close to this limit: {listed(more, most=NAMED)}." if more else ""
        return self.found(
            f"The activations of '{ranges.modules[first] or 'model'}' reached {near[first]:,.0f} at step "
            f"{ranges.nearest_steps[first]}, which is {share:.0f}% of {limit:,.0f}, the largest float16 "
            f"value. Values beyond this limit become infinite, which makes the loss NaN.{others} Measured "
            f"in {count_of(len(ranges.steps), 'sampled step')}.",
            fix=(_in_float32(f"'{ranges.modules[first]}'" if ranges.modules[first] else "this part"), BFLOAT16),
            evidence={
                "limit": limit,
                "highest": {ranges.modules[i]: float(near[i]) for i in close},
                "steps": {ranges.modules[i]: int(ranges.nearest_steps[i]) for i in close},
            },
            severity="warning",
            step=int(ranges.nearest_steps[first]),
        )


def _in_float32(part: str) -> str:
    return f"compute {part} in float32: use torch.autocast(..., enabled=False), and call .float() on its inputs"
