"""See `SwappedLossArguments`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.dependence import SwappedArguments


class SwappedLossArguments(Rule):
    """A custom Keras loss takes its arguments in the wrong order: predictions first, targets second.

    ## What it does
    Reads the argument names of a loss that was passed to `compile`. If the first is named after predictions
    (`y_pred`, `output`) and the second after targets (`y_true`, `labels`), the rule computes the loss on a batch
    in both orders.

    ## Why it is bad
    Keras passes the targets first, whatever the arguments are called. A squared difference is the same in both
    orders, but a cross entropy in the wrong order takes the logarithm of the targets, which are 0 or 1. The
    gradient then does not depend on how wrong a prediction is.

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
    The losses for the two orders must differ by more than 0.1%.

    ## Known problems
    The rule covers only Keras on TensorFlow, under `diagnose run`, with one output. The rule can infer nothing
    from argument names such as `a` and `b`.

    ## Sources
    Keras' guide "Training & evaluation with the built-in methods", "Custom losses".
    """

    severity = "error"
    causes = ("initial-loss-off", "evaluation-at-chance", *NO_LEARNING)

    @check
    def from_names(self, turned: SwappedArguments) -> Finding:
        """Report a loss whose argument names imply the opposite order."""
        return self.found(
            f"The loss {turned.name}({turned.first}, {turned.second}) takes the model's predictions first, but "
            f"Keras calls it with the targets first, so {turned.first} receives the targets and {turned.second} "
            f"the predictions. On one batch, the loss is {turned.as_called:.4g}; with the arguments in the "
            f"other order, it would be {turned.turned:.4g}.",
            fix=f"def {turned.name}({turned.second}, {turned.first}):",
            evidence={
                "loss": turned.name,
                "arguments": [turned.first, turned.second],
                "as_called": turned.as_called,
                "turned": turned.turned,
            },
        )
