"""See `LossOutOfRange`."""

from __future__ import annotations

from typing import Final

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import Verdicts
from diagnostics.facts.pipeline import DivergenceTerm, LossInputFacts
from diagnostics.facts.training import LossHistory

BELOW = 1e-4  # 0: a loss of 0 after rounding
MASS = 0.05  # distance from 1 that the sum over the classes may have
MANY = 3  # losses below 0 after the first step; a single one may have been misread

NAMES: Final = {
    "kl_div": "KL divergence",
    "kl_divergence": "KL divergence",
    "cross_entropy": "cross entropy",
    "binary_cross_entropy": "binary cross entropy",
    "binary_cross_entropy_with_logits": "binary cross entropy",
    "mse_loss": "squared error",
    "l1_loss": "absolute error",
    "smooth_l1_loss": "absolute error",
    "huber_loss": "absolute error",
    "binary_crossentropy": "binary cross entropy",
    "categorical_crossentropy": "cross entropy",
    "mean_squared_error": "squared error",
    "mean_absolute_error": "absolute error",
    "mean_squared_logarithmic_error": "squared error",
}
"""Losses, by function, that correct inputs never take below 0. Negative log-likelihoods of densities can be."""

OF_PROBABILITIES: Final = ("binary cross entropy", "cross entropy")


class LossOutOfRange(Rule):
    """The loss is negative, which its formula rules out.

    ## What it does
    Looks for negative values of a loss that is a single library call: cross entropy, squared or absolute error, KL
    divergence. It names the argument that makes them possible.

    ## Why it is bad
    These losses measure distances, and their minimum is 0. A negative value means that an argument is not what the
    function expects: targets of binary cross entropy outside 0 to 1, or probabilities where `kl_div` expects
    log-probabilities. Such a loss has no minimum at the right prediction. It falls, but the model does not
    improve.

    ## Example
    ```python
    loss = F.kl_div(student(x).softmax(-1), teacher(x).softmax(-1), reduction="batchmean")
    ```

    ## Instead
    ```python
    wanted = teacher(x).softmax(-1)
    loss = F.kl_div(student(x).log_softmax(-1), wanted, reduction="batchmean")
    ```

    ## Thresholds
    The loss is below -0.0001 in the first step or in at least three later ones. KL divergence is reported only if
    the exponentials of its input add up to less than 0.95 or more than 1.05 over the classes; for Keras' loss, the
    outputs or targets themselves are summed. Binary cross entropy is reported only if a target of the first batch
    is outside 0 to 1. With correct arguments, neither loss is negative. A weighted loss is not checked, because
    its weights may be negative on purpose. The thresholds are our choice.

    ## Known problems
    Arguments are known only for the first step. A handwritten loss is not checked. For a loss with further terms,
    only a KL divergence in the first step is checked.

    ## Sources
    The documentation of `torch.nn.KLDivLoss` ("the input should be in log-space") and of
    `torch.nn.BCEWithLogitsLoss` ("targets t[i] should be numbers between 0 and 1").
    """

    severity = "error"
    causes = ("initial-loss-off", "loss-divergence", "overfitting", *NO_LEARNING)

    @check
    def from_first_step(self, given: LossInputFacts) -> Finding | None:
        """Check the first loss."""
        if given.function not in NAMES or given.weighted:
            raise NotApplicable("needs a loss that cannot be negative, without weights")
        if not given.value < -BELOW:
            return None
        return self._found(given, f"The first loss is {given.value:.4g}.", given.value, 0)

    @check
    def from_course(self, given: LossInputFacts, losses: LossHistory, _: Verdicts) -> Finding | None:
        """Check all losses."""
        if given.function not in NAMES or given.weighted:
            raise NotApplicable("needs a loss that cannot be negative, without weights")
        below = np.flatnonzero(losses.values < -BELOW)
        if len(below) < MANY:
            return None
        lowest, step = float(np.nanmin(losses.values[below])), int(losses.steps[below[0]])
        return self._found(
            given, f"The loss is negative from step {step:,} on, and fell to {lowest:,.4g}.", lowest, step
        )

    @check
    def from_term(self, term: DivergenceTerm) -> Finding | None:
        """Check a divergence that is one term of the first loss, as in distillation."""
        given = term.given
        if given.weighted or not given.value < -BELOW:
            return None
        seen = f"The KL divergence among the terms of the first loss is {given.value:.4g}."
        return self._found(given, seen, given.value, 0)

    def _found(self, given: LossInputFacts, seen: str, lowest: float, step: int) -> Finding | None:
        name = NAMES[given.function]
        because, fix = _cause(given, name)
        if not because:
            return None
        return self.found(
            f"{seen} A {name} is never below 0: {because}.",
            fix=fix,
            evidence={"lowest_loss": lowest, **vars(given)},
            step=step,
        )


def _cause(given: LossInputFacts, name: str) -> tuple[str, str]:
    """Return the argument that makes negative values possible, and the fix; empty if there is none."""
    if given.function == "kl_div":
        if given.mass is None or abs(given.mass - 1) <= MASS or given.lowest_input is None:
            return "", ""
        what = "probabilities" if given.lowest_input >= 0 and (given.highest_input or 0) <= 1 else "logits"
        return (
            f"its input is not log-probabilities: the exponentials add up to {given.mass:.3g} over the classes, "
            f"not to 1. It runs from {given.lowest_input:.3g} to {given.highest_input:.3g}: {what}",
            "loss = F.kl_div(F.log_softmax(logits, dim=-1), target, reduction='batchmean')",
        )
    if given.function == "kl_divergence":
        return _no_distribution(given)
    if name not in OF_PROBABILITIES or given.lowest_target is None or given.highest_target is None:
        return "", ""
    if given.lowest_target >= 0 and given.highest_target <= 1:
        return "", ""
    if {given.lowest_target, given.highest_target} == {-1.0, 1.0}:
        fix = "labels = (labels + 1) / 2  # -1 and 1 become 0 and 1"
    else:
        fix = "scale the targets to 0..1, or use a squared error"
    return (
        f"its targets must be probabilities, and those of the first batch run from {given.lowest_target:.4g} to "
        f"{given.highest_target:.4g}",
        fix,
    )


def _no_distribution(given: LossInputFacts) -> tuple[str, str]:
    """Name the argument of Keras' KL divergence that does not add up to 1."""
    masses = {"outputs": given.mass, "targets": given.target_mass}
    off = [
        f"the {what} add up to {mass:.3g}"
        for what, mass in masses.items()
        if mass is not None and abs(mass - 1) > MASS
    ]
    if not off:
        return "", ""
    fix = (
        'keras.layers.Dense(units, activation="softmax")'
        if given.mass is not None and abs(given.mass - 1) > MASS
        else "targets / targets.sum(axis=-1, keepdims=True)"
    )
    return (
        f"it compares distributions, and {' and '.join(off)} over the last axis of an example, not to 1",
        fix,
    )
