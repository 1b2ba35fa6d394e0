"""See `UpdateBelowPrecision`."""

from __future__ import annotations

from typing import Final

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.layers import RoundingFacts
from diagnostics.facts.training import LossHistory, StepHistory
from diagnostics.rules.shared.update_size import top_rates

SPACING: Final = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
"""Distance between 1 and the next larger number."""
SMALLEST: Final = {"bfloat16": 2.0**-133, "float16": 2.0**-24}
"""Distance between the numbers nearest to 0."""

STEPS = 50  # between the first and the last sample
SAMPLES = 4
WEIGHTS = 64  # that have a gradient
OFTEN = 0.75  # of the samples: such a weight has a gradient in them
STUCK = 0.9  # of them never change
LEARNED = 0.5  # of the first loss; then the weights that do change were enough


class UpdateBelowPrecision(Rule):
    """Updates are too small for half-precision weights and are rounded away.

    ## What it does
    In a watched run with weights in bfloat16 or float16, the rule counts the sampled weights that never changed
    even though they had gradients.

    ## Why it is bad
    A bfloat16 number has 8 significant bits: around 0.1, neighbouring numbers are 0.0005 apart. An update smaller
    than half of this distance is rounded away at every step, and the lost updates do not add up. The loss and the
    gradients are finite, but the weights do not change.

    ## Example
    ```python
    model = AutoModel.from_pretrained(name, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ```

    ## Instead
    ```python
    model = AutoModel.from_pretrained(name)                      # float32
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(**batch).loss
    ```

    ## Thresholds
    The rule considers the sampled weights that had a gradient in at least 75% of the samples. At least 90% of
    these weights must have stayed the same for at least 50 steps. Their median update must be smaller than half
    the spacing between representable numbers at the weight's magnitude. With SGD, the update is the learning rate
    times the gradient. It must be below 5% of the spacing, to allow for momentum. With other optimizers, the rule
    takes the learning rate as the size of the update. The finding is a note if the loss has halved anyway.

    ## Known problems
    Only PyTorch's own optimizers are covered, because other optimizers may keep float32 copies, accumulate the
    rounding errors (Kahan summation) or use stochastic rounding.

    ## Sources
    Pedram Zamirai et al., "Revisiting BFloat16 Training" (2020); Paulius Micikevicius et al., "Mixed precision
    training" (2018), section 3.1, "FP32 master copy of weights".
    """

    severity = "warning"
    causes = ("unchanged-parameters", "learning-rate-too-low", *NO_LEARNING)

    @check
    def from_sample(
        self, rounding: RoundingFacts, steps: StepHistory, losses: LossHistory | None = None
    ) -> Finding | None:
        """Count the weights that never changed."""
        between = rounding.last_step - rounding.first_step
        if between < STEPS or rounding.samples < SAMPLES:
            raise NotApplicable(f"needs {SAMPLES} samples of the weights over {STEPS} steps")
        judged = rounding.with_gradient >= OFTEN * rounding.samples
        if judged.sum() < WEIGHTS:
            raise NotApplicable(f"needs at least {WEIGHTS} half-precision weights that have gradients")
        stuck = judged & ~rounding.moved
        share = float(stuck.sum() / judged.sum())
        rate = float(top_rates(steps).max(initial=0.0))
        if share < STUCK or rate == 0:
            return None
        half = _half_spacing(rounding.weights[stuck], rounding.dtype)
        sgd = rounding.optimizer == "SGD"
        updates = rate * rounding.gradients[stuck] * 10 if sgd else np.full(len(half), rate)
        if np.median(updates) >= np.median(half):
            return None
        update = float(np.median(rate * rounding.gradients[stuck])) if sgd else rate
        learned = _learned(losses)
        about = (
            f"learning rate {rate:g} times the gradient"
            if sgd
            else f"with {rounding.optimizer}, roughly the learning rate"
        )
        sampled = f"the {int(judged.sum()):,} sampled {rounding.dtype} weights"
        still = f"None of {sampled} changed" if share == 1 else f"{share:.0%} of {sampled} did not change"
        return self.found(
            f"{still} by a single bit in {between:,} steps, although they had gradients. A typical weight is "
            f"{_typical(rounding.weights[stuck]):.2g}, and at that size updates below "
            f"{float(np.median(half)):.2g} are rounded away; the updates here are about {update:.2g} ({about})."
            + (" The loss has fallen anyway, because other weights did change." if learned else ""),
            fix=(
                "keep the weights in float32, and use torch.autocast for half precision",
                "use an optimizer that keeps float32 master weights, or one with stochastic rounding",
                "use a higher learning rate",
            ),
            evidence={
                "dtype": rounding.dtype,
                "unchanged_share": share,
                "steps": between,
                "learning_rate": rate,
                "typical_update": update,
                "half_spacing": float(np.median(half)),
                "layers": list(rounding.layers),
            },
            step=rounding.last_step,
            severity="note" if learned else "warning",
        )


def _half_spacing(weights: Array, dtype: str) -> Array:
    """Return float64 (n,), half of the distance to the next number."""
    sizes = np.abs(weights.astype(np.float64))
    exponents = np.floor(np.log2(np.maximum(sizes, SMALLEST[dtype])))
    result: Array = np.maximum(2.0**exponents * SPACING[dtype], SMALLEST[dtype]) / 2
    return result


def _typical(weights: Array) -> float:
    return float(np.median(np.abs(weights)))


def _learned(losses: LossHistory | None) -> bool:
    """Return whether the loss has at least halved."""
    if losses is None:
        return False
    values = losses.values[np.isfinite(losses.values)]
    if not len(values):
        return False
    tenth = max(1, len(values) // 10)
    began, ended = float(np.median(values[:tenth])), float(np.median(values[-tenth:]))
    return ended < LEARNED * abs(began)
