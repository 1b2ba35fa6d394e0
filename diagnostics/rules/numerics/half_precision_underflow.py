"""See `HalfPrecisionUnderflow`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.training import UnderflowFacts

LEAST = 2.0**-24  # the smallest positive number of float16
CLIPPED = 2.0**-6  # how far clipping or averaging may have scaled it down since
CROWDED = 0.1  # of the numbers that are not 0 are exactly the least one
LASTING = 3  # steps looked at
MOSTLY = 2 / 3  # of the steps looked at
NAMED = 4


class HalfPrecisionUnderflow(Rule):
    """Gradients are too small for float16 and are rounded to zero.

    ## What it does
    While a model that computes in float16 is watched: counts in a few steps, layer by layer, how many numbers of
    the gradient are exactly 2^-24, the smallest number that float16 has. Where they crowd there, what is smaller
    was rounded to 0.

    ## Why it is bad
    What is rounded to 0 teaches nothing, and what is rounded to 1, 2 or 3 times the smallest number teaches hardly
    more than its sign. The layers farthest from the loss go first. Nothing fails; the model learns less than the
    same one in float32.

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
    A tenth of a layer's numbers that are not 0 are exactly the least of them, and that is 2^-24, or down to 2^-30,
    since clipping and averaging scale it down; in two thirds of the steps looked at, and at least 3. The tenth is
    ours: numbers spread evenly around 0 are then rounded to 0 half as often again, one in 20, and their median is
    7 times the least one, 3 bits. In float32 no two numbers are the least one. Measured under autocast, an MLP of
    3 layers has none at its own loss, 5% at a thousandth and 42% at a ten-thousandth of it, where 21% are 0.

    ## Known problems
    A layer whose gradient is 0 altogether shows nothing of it, and is only counted beside others. Other zeros, of
    dead ReLUs or of tokens that did not occur, do not count. A loss scale of less than 64 looks like none.
    bfloat16 reaches as far down as float32.

    ## Sources
    Paulius Micikevicius et al., "Mixed precision training" (2018), which proposes loss scaling; IEEE 754,
    binary16; PyTorch's documentation of `torch.amp.GradScaler`.
    """

    severity = "warning"
    causes = ("vanishing-gradients", "unchanged-parameters", *NO_LEARNING)
    no_exhibit = "it takes a loss scaler away that every recipe for float16 has; the loss falls all the same"

    @check
    def from_underflow(self, underflow: UnderflowFacts) -> Finding | None:
        """Look for layers whose gradients crowd at the least number of float16."""
        count = len(underflow.steps)
        if count < LASTING:
            raise NotApplicable(f"needs {LASTING} steps in float16 that were looked at")
        low = underflow.least
        at_the_least = (low <= LEAST * 1.001) & (low >= LEAST * CLIPPED)
        crowded = at_the_least & (underflow.at_least >= CROWDED)
        lasting = np.flatnonzero(crowded.sum(0) >= max(LASTING, MOSTLY * count))
        if not lasting.size:
            return None
        shares = np.array([np.median(underflow.at_least[crowded[:, layer], layer]) for layer in lasting])
        worst = int(lasting[shares.argmax()])
        empty = int((np.nan_to_num(underflow.zero_shares) == 1).all(0).sum())
        names = [f"'{underflow.layers[layer]}'" for layer in lasting if layer != worst]
        more = [*names[:NAMED], f"{len(names) - NAMED} more"] if len(names) > NAMED else names
        others = f" The same in {' and '.join([', '.join(more[:-1]), more[-1]] if len(more) > 1 else more)}."
        lost = f" {empty} {'layer gets' if empty == 1 else 'layers get'} no gradient but 0." if empty else ""
        zero = 100 * float(np.median(underflow.zero_shares[crowded[:, worst], worst]))
        return self.found(
            f"In '{underflow.layers[worst]}', {100 * shares.max():.0f} % of the gradient's numbers that are not 0 "
            f"are exactly {np.nanmin(low[:, worst]):.3g}, where float16 ends, and {zero:.0f} % are 0, in "
            f"{int(crowded[:, worst].sum())} of the {count} steps looked at. What is smaller was rounded to 0."
            f"{others if more else ''}{lost}",
            fix="scaler = torch.amp.GradScaler(...): scaler.scale(loss).backward(), scaler.step(optimizer), "
            "scaler.update(); or torch.autocast with bfloat16, which reaches as far down as float32",
            evidence={
                "steps": underflow.steps.tolist(),
                "share_at_least": {
                    underflow.layers[layer]: float(share) for layer, share in zip(lasting, shares, strict=True)
                },
                "layers_without_gradient": empty,
            },
            step=int(underflow.steps[np.flatnonzero(crowded[:, worst])[0]]),
        )
