"""See `LossOutOfRange`."""

from __future__ import annotations

from typing import Final

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import Verdicts
from diagnostics.facts.loss_call import Argument, LossCall, LossCalls
from diagnostics.facts.loss_contracts import KERAS
from diagnostics.facts.pipeline import LossFacts
from diagnostics.facts.training import LossHistory
from diagnostics.rules.shared.first_found import first_found

BELOW = 1e-4  # 0: a loss of 0 after rounding
MASS = 0.05  # distance from 1 that the sum over the classes may have
MANY = 3  # losses below 0 after the first step; a single one may have been misread

OF_PROBABILITIES: Final = ("binary_cross_entropy", "cross_entropy")
CAUSE: Final = "targets-out-of-reach"  # names the targets that take a loss below 0
SINGLE: Final = "needs a loss whose formula is known"


class LossOutOfRange(Rule):
    """The loss is negative, which its formula rules out.

    ## What it does
    Looks for negative values of a loss that is a single library call: cross entropy, squared or absolute error, KL
    divergence. The finding names the argument that makes a negative value possible.

    ## Why it is bad
    Cross entropy, squared and absolute errors and the KL divergence measure a distance, so they cannot be below 0.
    A negative value means that an argument is not what the function expects: binary cross entropy may have targets
    below 0 or above 1, or `kl_div` may receive probabilities instead of log-probabilities. The loss then falls,
    but the model does not improve.

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
    The loss must be below -0.0001 at the first step, or at three or more steps. A KL divergence is reported only
    if the exponentials of its input add up to less than 0.95 or more than 1.05 over the classes. Keras' KL
    divergence expects probabilities, so the rule adds up the outputs and the targets directly. A binary cross
    entropy is reported only if a target in the first batch is below 0 or above 1.

    ## Known problems
    Weighted and handwritten losses are not checked. In a loss with additional terms, only a KL divergence is
    checked, and only at the first step.

    ## Sources
    The documentation for `torch.nn.KLDivLoss` ("the input should be in log-space") and
    `torch.nn.BCEWithLogitsLoss` ("targets t[i] should be numbers between 0 and 1").
    """

    severity = "error"
    causes = ("initial-loss-off", "loss-divergence", "overfitting", *NO_LEARNING)

    @check
    def from_first_step(self, calls: LossCalls, _: LossFacts) -> Finding | None:
        """Check the first loss, and a divergence that is one of its terms, as in distillation."""
        return first_found(calls.calls, self._from_call)

    @check
    def from_course(self, calls: LossCalls, losses: LossHistory, verdicts: Verdicts) -> Finding | None:
        """Check all losses."""
        call = calls.calls[0]
        if not call.whole:
            raise NotApplicable(SINGLE)
        _check_formula(call)
        if CAUSE in verdicts.found:
            raise NotApplicable(f"already reported as {CAUSE}")
        below = np.flatnonzero(losses.values < -BELOW)
        if len(below) < MANY:
            return None
        lowest, step = float(np.nanmin(losses.values[below])), int(losses.steps[below[0]])
        return self._found(
            call, f"The loss first fell below 0 at step {step:,} and reached {lowest:,.4g}.", lowest, step
        )

    def _from_call(self, call: LossCall) -> Finding | None:
        if not call.whole and call.function != "kl_div":
            raise NotApplicable(SINGLE)
        _check_formula(call)
        if not call.value < -BELOW:
            return None
        which = "first loss" if call.whole else f"{call.contract.called} term of the first loss"
        return self._found(call, f"The {which} is {call.value:.4g}.", call.value, 0)

    def _found(self, call: LossCall, seen: str, lowest: float, step: int) -> Finding | None:
        mass, target_mass = _masses(call)
        inputs, targets = _ends(call.prediction), _target_ends(call)
        because, fix = _cause(call, mass, target_mass)
        if not because:
            return None
        return self.found(
            f"{seen} A {call.contract.called} cannot be negative {because}.",
            fix=fix,
            evidence={
                "lowest_loss": lowest,
                "function": call.function,
                "value": call.value,
                "mass": mass,
                "lowest_input": inputs[0],
                "highest_input": inputs[1],
                "lowest_target": targets[0],
                "highest_target": targets[1],
                "target_mass": target_mass,
                "weighted": call.weighted,
            },
            step=step,
        )


def _check_formula(call: LossCall) -> None:
    if call.contract.lowest is None or call.weighted:
        raise NotApplicable("needs an unweighted loss that cannot be negative")


def _ends(argument: Argument | None) -> tuple[float, float] | tuple[None, None]:
    return (None, None) if argument is None or argument.ends is None else argument.ends


def _target_ends(call: LossCall) -> tuple[float, float] | tuple[None, None]:
    """Return lowest and highest target; None for class indices, or if not known."""
    target = call.target
    indices = call.contract.targets == "classes" and target is not None and target.values.dtype.kind != "f"
    return (None, None) if indices else _ends(target)


def _masses(call: LossCall) -> tuple[float | None, float | None]:
    """Return what the shares of the classes add up to, the median over examples, in prediction and target.

    Those of the prediction are its exponentials, 1 for log-probabilities; Keras' divergence reads the shares
    themselves. None where no axis counts classes.
    """
    prediction, target = call.prediction, call.target
    if prediction is None or prediction.values.ndim < 2 or not prediction.values.size:
        return None, None
    if call.contract.targets == "distribution" and call.contract.reads == "probabilities":
        if target is None or target.shape != prediction.shape:
            return None, None
        return float(np.median(prediction.values.sum(-1))), float(np.median(target.values.sum(-1)))
    if call.function in KERAS:
        return None, None
    with np.errstate(all="ignore"):
        shares = np.exp(prediction.values)
        rows = shares.reshape(len(shares), -1)
        sums = [shares.sum(-1), shares.sum(1), rows.sum(1)] + ([rows.sum()] if prediction.rows is None else [])
    medians = [float(np.quantile(one, 0.5, method="lower")) for one in sums]
    return min(medians, key=lambda one: abs(one - 1)), None


def _cause(call: LossCall, mass: float | None, target_mass: float | None) -> tuple[str, str]:
    """Return when the loss cannot be negative and why it is, and the fix; empty if nothing explains it."""
    if call.function == "kl_div":
        lowest, highest = _ends(call.prediction)
        if lowest is None or highest is None or mass is None or abs(mass - 1) <= MASS:
            return "", ""
        what = "probabilities" if lowest >= 0 and highest <= 1 else "logits"
        return (
            f"if its inputs are log-probabilities. The exponentials of these inputs sum to {mass:.3g} over "
            f"the classes, not to 1. The inputs range from {lowest:.3g} to {highest:.3g}, so they are "
            f"{what}",
            "loss = F.kl_div(F.log_softmax(logits, dim=-1), target, reduction='batchmean')",
        )
    if call.function == "kl_divergence":
        return _no_distribution(mass, target_mass)
    lowest, highest = _target_ends(call)
    if call.contract.kind not in OF_PROBABILITIES or lowest is None or highest is None:
        return "", ""
    if lowest >= 0 and highest <= 1:
        return "", ""
    if (lowest, highest) == (-1.0, 1.0):
        fix = "labels = (labels + 1) / 2  # -1 and 1 become 0 and 1"
    else:
        fix = "scale the targets to the range from 0 to 1, or use a squared error"
    return (
        f"if its targets are probabilities, but the targets in the first batch range from {lowest:.4g} to "
        f"{highest:.4g}",
        fix,
    )


def _no_distribution(mass: float | None, target_mass: float | None) -> tuple[str, str]:
    """Name the argument of Keras' KL divergence that does not add up to 1."""
    masses = {"outputs": mass, "targets": target_mass}
    off = [what for what, one in masses.items() if one is not None and abs(one - 1) > MASS]
    if not off:
        return "", ""
    named = " and ".join(f"the {what} of an example sum to {masses[what]:.3g}" for what in off)
    return (
        f"if both arguments are probability distributions, but {named} over the last axis, not to 1",
        'keras.layers.Dense(units, activation="softmax")'
        if "outputs" in off
        else "targets = targets / targets.sum(axis=-1, keepdims=True)",
    )
