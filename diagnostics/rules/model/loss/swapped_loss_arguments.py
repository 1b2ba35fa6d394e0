"""See `SwappedLossArguments`."""

from __future__ import annotations

from diagnostics.engine.causality import NAN, NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.dependence import SwappedArguments
from diagnostics.facts.loss_call import LossCalls

WORSE = 0.1  # of the larger of both losses: how far predictions at the targets must be above surer ones


class SwappedLossArguments(Rule):
    """A loss gets or uses predictions and targets in the wrong order.

    ## What it does
    Computes, on one batch, the loss that was passed to `compile`, with its arguments in both orders. The rule
    fires in three cases:

    - The first argument is named after predictions (`y_pred`, `output`) and the second after targets (`y_true`,
      `labels`).
    - The loss equals Keras' categorical or binary cross entropy with its arguments swapped.
    - The targets are class probabilities, and the loss is higher for predictions equal to the targets than for
      predictions that are nearly certain of the most likely class. In the other order, the loss is lowest for
      predictions equal to the targets.

    In PyTorch, the rule looks for a call to `cross_entropy`, `binary_cross_entropy` or
    `binary_cross_entropy_with_logits` whose second argument, the target, requires a gradient while its first
    argument does not.

    ## Why it is bad
    Keras passes the targets first, whatever the arguments are called; PyTorch's losses take them second. A squared
    difference is the same in both orders, but a cross entropy in the wrong order takes the logarithm of the
    targets, which are 0 or 1. The gradient then does not depend on how wrong a prediction is.

    ## Example
    ```python
    def weighted_loss(y_pred, y_true):
        log = keras.ops.log
        return -keras.ops.mean(3 * y_true * log(y_pred) + (1 - y_true) * log(1 - y_pred))
    ```

    ## Instead
    ```python
    def weighted_loss(y_true, y_pred):
        log = keras.ops.log
        return -keras.ops.mean(3 * y_true * log(y_pred) + (1 - y_true) * log(1 - y_pred))
    ```

    ## Thresholds
    The losses for the two orders must differ by more than 0.1%. A loss counts as equal to a cross entropy if they
    differ by at most 0.01%. For class probabilities, 1% of a uniform distribution is mixed into the predictions.
    The loss must then be higher for predictions equal to the targets than for the nearly certain ones, by more
    than 10% of the larger of the two losses.

    ## Known problems
    For Keras, the rule covers only TensorFlow, under `diagnose run`, with one output. The value of a custom
    formula is checked only if the targets are class probabilities rather than labels. A KL divergence in the wrong
    order is not reported, because it is lowest at the targets in both orders.

    ## Sources
    Keras' guide "Training & evaluation with the built-in methods", "Custom losses"; PyTorch's documentation for
    `torch.nn.BCELoss` (`forward(input, target)`).
    """

    severity = "error"
    causes = ("initial-loss-off", "labels-out-of-range", "evaluation-at-chance", *NAN, *NO_LEARNING)

    @check
    def from_names(self, turned: SwappedArguments) -> Finding:
        """Report a loss whose argument names imply the opposite order."""
        if turned.entropy is not None or turned.right is not None:
            raise NotApplicable
        return self.found(
            f"The loss {turned.name}({turned.first}, {turned.second}) takes the model's predictions first, but "
            f"Keras calls it with the targets first, so {turned.first} receives the targets and {turned.second} "
            f"the predictions. {_both(turned)}",
            fix=f"def {turned.name}({turned.second}, {turned.first}):",
            evidence=_evidence(turned),
        )

    @check
    def from_calls(self, calls: LossCalls) -> Finding | None:
        """Report a loss of PyTorch that was given the targets first."""
        call = calls.calls[0]
        if len(calls.calls) > 1 or not call.swapped:
            return None
        return self.found(
            f"The loss {call.function} was called with the targets first and the predictions second: its first "
            "argument does not depend on the model, but its second one does. It compares the targets, as if they "
            "were predictions, with the output of the model, so it is not lowest where both are equal.",
            fix=f"torch.nn.functional.{call.function}(predictions, targets)",
            evidence={"loss": call.function},
        )

    @check
    def from_values(self, turned: SwappedArguments) -> Finding | None:
        """Report a loss whose values imply the opposite order."""
        taken = (
            f"The loss {turned.name} takes {turned.second} for the targets and {turned.first} for the predictions"
        )
        if turned.entropy is not None:
            return self.found(
                f"{taken}: it equals keras.losses.{turned.entropy}({turned.second}, {turned.first}), which takes "
                f"the logarithm of the targets. {_both(turned)}",
                fix=f"keras.losses.{turned.entropy}({turned.first}, {turned.second})",
                evidence=_evidence(turned),
            )
        if turned.right is None or turned.surer is None:
            raise NotApplicable
        if turned.right - turned.surer <= WORSE * max(abs(turned.right), abs(turned.surer)):
            return None
        return self.found(
            f"{taken}. It is {turned.right:.4g} for predictions equal to the targets but {turned.surer:.4g} for "
            "predictions that are certain of the most likely class; with the arguments in the other order, it is "
            f"lowest at the targets. {_both(turned)}",
            fix="take the logarithm of the predictions, not of the targets",
            evidence={**_evidence(turned), "right": turned.right, "surer": turned.surer},
        )


def _both(turned: SwappedArguments) -> str:
    return (
        f"On one batch, the loss is {turned.as_called:.4g}; with the arguments in the other order, it would be "
        f"{turned.turned:.4g}."
    )


def _evidence(turned: SwappedArguments) -> dict[str, object]:
    return {
        "loss": turned.name,
        "arguments": [turned.first, turned.second],
        "as_called": turned.as_called,
        "turned": turned.turned,
    }
