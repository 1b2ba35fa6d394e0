"""See `TargetsOutOfReach`."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import Array, BatchFacts, LossFacts, OutputFacts

RANGES: Final = {
    "sigmoid": (0.0, 1.0),
    "hard_sigmoid": (0.0, 1.0),
    "softmax": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "relu": (0.0, math.inf),
    "softplus": (0.0, math.inf),
}
"""What the last function of a model can give, by its name."""

MARGIN = 0.1  # of the range, or of the largest target where it has no end: labels may be noisy, or smoothed
SHARE = 0.1  # of the targets of a batch
ROUNDING = 1e-3  # as half precision rounds numbers near 1


class TargetsOutOfReach(Rule):
    """Targets lie where the model's last function, or its loss, cannot follow.

    ## What it does
    Compares the targets of one batch with the range of the model's last activation, under a squared or absolute
    error, and with 0 to 1 under binary cross entropy.

    ## Why it is bad
    A sigmoid gives 0 to 1. If the targets are prices from 3 to 103, every answer saturates at 1, where its
    gradient is zero: the loss falls for a moment and then stays at the mean squared distance from 1. Binary cross
    entropy is a distance only for targets from 0 to 1; beyond, it has no minimum, falls below 0 and rewards ever
    larger logits. Labels of -1 and 1, and pixels from 0 to 255, do that.

    ## Example
    ```python
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
    loss = nn.functional.mse_loss(model(features), prices)     # prices run from 3 to 103
    ```

    ## Instead
    ```python
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    loss = nn.functional.mse_loss(model(features), (prices - prices.mean()) / prices.std())
    ```

    ## Thresholds
    At least 10% of the targets of the batch must lie outside by 10% of the range (of the largest target where the
    range has no end); under binary cross entropy by 0.001, which is rounding. The shares are ours.

    ## Known problems
    Judged on one batch, and only where the last function is known: of a PyTorch model, from the graph of its
    output. A loss that leaves out some targets, such as -1 for "unknown", is judged only if its value shows that
    it did not leave them out.

    ## Sources
    The documentation of `torch.nn.BCEWithLogitsLoss` ("targets t[i] should be numbers between 0 and 1") and of
    `torch.nn.Sigmoid`; public reports of regressions that end in a sigmoid, collected in benchmarks of Keras bugs.
    """

    severity = "error"
    causes = (
        "initial-loss-off",
        "loss-out-of-range",
        "saturated-activations",
        "unscaled-inputs",
        "vanishing-gradients",
        *NO_LEARNING,
    )

    @check
    def from_batch(self, batch: BatchFacts, outputs: OutputFacts, loss: LossFacts) -> Finding | None:
        """Compare the targets with what can be reached."""
        targets = _numbers(batch.labels)
        if targets is None:
            raise NotApplicable("needs targets that are numbers")
        if loss.kind == "binary_cross_entropy":
            return self._beyond_probabilities(targets, loss)
        if loss.kind not in ("mean_squared_error", "mean_absolute_error"):
            raise NotApplicable("needs a squared or absolute error, or binary cross entropy")
        if outputs.last_activation is None:
            raise NotApplicable("needs to know the function that the model ends in")
        return self._beyond_activation(targets, outputs.last_activation)

    def _beyond_probabilities(self, targets: Array, loss: LossFacts) -> Finding | None:
        share = float(((targets < -ROUNDING) | (targets > 1 + ROUNDING)).mean())
        if share < SHARE:
            return None
        lowest, highest = float(targets.min()), float(targets.max())
        signs = set(np.unique(targets)) <= {-1.0, 1.0}
        return self.found(
            f"{share:.0%} of the targets lie outside of 0 to 1: they run from {lowest:.4g} to {highest:.4g}. "
            "Binary cross entropy has no minimum for them: it falls below 0 without end, and the logits grow with "
            "it.",
            fix="labels = (labels + 1) / 2  # -1 and 1 become 0 and 1"
            if signs
            else ("scale the targets to 0..1, as pixels by / 255", "loss_fn = torch.nn.MSELoss()"),
            evidence={
                "lowest_target": lowest,
                "highest_target": highest,
                "share_outside": share,
                "loss": loss.name,
            },
        )

    def _beyond_activation(self, targets: Array, activation: str) -> Finding | None:
        if activation not in RANGES:
            return None
        least, most = RANGES[activation]
        slack = MARGIN * (most - least if math.isfinite(most) else float(np.abs(targets).max()))
        share = float(((targets < least - slack) | (targets > most + slack)).mean())
        if share < SHARE:
            return None
        lowest, highest = float(targets.min()), float(targets.max())
        reach = f"{least:g} to {most:g}" if math.isfinite(most) else f"{least:g} and more"
        return self.found(
            f"The model ends in {activation}, which gives {reach}, and the targets run from {lowest:.4g} to "
            f"{highest:.4g}: {share:.0%} of them are out of reach. The answers saturate at the bound, where they "
            "get no gradient.",
            fix={
                "torch": (f"leave out the last {activation}", "scale the targets into its range"),
                "keras": ("keras.layers.Dense(units)  # no activation", "scale the targets into its range"),
            },
            evidence={
                "last_activation": activation,
                "lowest_target": lowest,
                "highest_target": highest,
                "share_out_of_reach": share,
            },
        )


def _numbers(labels: Array | None) -> Array | None:
    """Flatten targets to finite float64 (n,); None if there are none."""
    if labels is None or labels.dtype.kind not in "fiu":
        return None
    flat = labels.reshape(-1).astype(np.float64)
    flat = flat[np.isfinite(flat)]
    return flat if flat.size else None
