"""See `HalfPrecisionUnderflow`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.layers import UnderflowFacts
from diagnostics.text.join import among, count_of, listed

SMALLEST_FLOAT16 = 2.0**-24  # the smallest positive number of float16
CLIPPED = 2.0**-6  # factor by which clipping or averaging may have scaled it down
CROWDED = 0.1  # of the non-zero numbers are exactly the smallest one
LASTING = 3  # sampled steps
MOSTLY = 2 / 3  # of the sampled steps
NAMED = 4


class HalfPrecisionUnderflow(Rule):
    """Gradients are too small for float16 and are rounded to zero.

    ## What it does
    In a few steps of a watched run that computes in float16, the rule counts how many gradient values of each
    layer are exactly 2^-24, the smallest positive float16 number. If many values are exactly 2^-24, smaller values
    were rounded to 0.

    ## Why it is bad
    A gradient of 0 changes no weight, and a gradient near float16's smallest number keeps little more than its
    sign. The layers farthest from the loss underflow first. No error is raised, but the model learns less than the
    same model in float32.

    ## Example
    ```python
    with torch.autocast("cuda", dtype=torch.float16):
        loss = loss_fn(model(batch), target)
    loss.backward()
    optimizer.step()
    ```

    ## Instead
    ```python
    scaler = torch.amp.GradScaler("cuda")                      # once, before the loop
    with torch.autocast("cuda", dtype=torch.float16):
        loss = loss_fn(model(batch), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ## Thresholds
    At least 10% of a layer's non-zero gradient values must equal the smallest of them. That value must be 2^-24,
    or between 2^-30 and 2^-24 if clipping or averaging has scaled it down. Both conditions must hold in at least 3
    sampled steps, and in at least two thirds of all sampled steps. If gradient values are spread evenly around 0,
    a share of 10% means that another 5% were rounded to 0. In a test under autocast, the share was 0% for a
    3-layer MLP, and 42% after its loss was divided by 10,000.

    ## Known problems
    A layer whose gradient is entirely 0 is reported only if other layers show underflow. The rule does not check
    bfloat16, which has the range of float32.

    ## Sources
    Paulius Micikevicius et al., "Mixed precision training" (2018), which proposes loss scaling; IEEE 754,
    binary16; PyTorch's documentation for `torch.amp.GradScaler`.
    """

    severity = "warning"
    causes = ("vanishing-gradients", "unchanged-parameters", *NO_LEARNING)

    @check
    def from_underflow(self, underflow: UnderflowFacts) -> Finding | None:
        """Look for layers with many gradient values at the smallest number of float16."""
        count = len(underflow.steps)
        if count < LASTING:
            raise NotApplicable(f"needs {LASTING} sampled steps in float16")
        low = underflow.least
        at_the_least = (low <= SMALLEST_FLOAT16 * 1.001) & (low >= SMALLEST_FLOAT16 * CLIPPED)
        crowded = at_the_least & (underflow.at_least >= CROWDED)
        lasting = np.flatnonzero(crowded.sum(0) >= max(LASTING, MOSTLY * count))
        if not lasting.size:
            return None
        shares = np.array([np.median(underflow.at_least[crowded[:, layer], layer]) for layer in lasting])
        worst = int(lasting[shares.argmax()])
        empty = int((np.nan_to_num(underflow.zero_shares) == 1).all(0).sum())
        names = [f"'{underflow.layers[layer]}'" for layer in lasting if layer != worst]
        others = f" The same happens in {listed(names, most=NAMED)}." if names else ""
        lost = f" The gradient of {count_of(empty, 'layer')} is entirely 0." if empty else ""
        least = float(np.nanmin(low[:, worst]))
        scaled = " scaled down by clipping or averaging" if least < 0.999 * SMALLEST_FLOAT16 else ""
        zero = 100 * float(np.median(underflow.zero_shares[crowded[:, worst], worst]))
        return self.found(
            f"In {among(int(crowded[:, worst].sum()), count, 'sampled step')}, {100 * shares.max():.0f}% of the "
            f"non-zero gradient values in '{underflow.layers[worst]}' are exactly {least:.3g}, the smallest "
            f"positive float16 value{scaled}, and {zero:.0f}% of all values are 0. Smaller values were rounded "
            f"to 0.{others}{lost}",
            fix=(
                "scale the loss: scaler = torch.amp.GradScaler(...), then scaler.scale(loss).backward(), "
                "scaler.step(optimizer) and scaler.update()",
                "use torch.autocast with bfloat16, which has the same range as float32",
            ),
            evidence={
                "steps": underflow.steps.tolist(),
                "share_at_least": {
                    underflow.layers[layer]: float(share) for layer, share in zip(lasting, shares, strict=True)
                },
                "layers_without_gradient": empty,
            },
            step=int(underflow.steps[np.flatnonzero(crowded[:, worst])[0]]),
        )
