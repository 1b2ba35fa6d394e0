"""See `SwappedLossArguments`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.dependence import TurnedArguments


class SwappedLossArguments(Rule):
    """A loss of the script's own takes the model's predictions for the targets, and the reverse.

    ## What it does
    Reads the names of the arguments of a loss that was given to `compile`. Where the first is named for
    predictions (`y_pred`, `output`) and the second for targets (`y_true`, `labels`), it computes the loss on a
    batch as Keras calls it, and the other way round.

    ## Why it is bad
    Keras calls a loss with the targets first, whatever its arguments are named. A squared difference is the same
    both ways. A cross entropy is not: it then takes the logarithm of the targets, which are 0 or 1, and its
    gradient is the same however wrong a prediction is.

    ## Example
    ```python
    def weighted_loss(y_pred, y_true):
        return -keras.ops.mean(3 * y_true * keras.ops.log(y_pred) + (1 - y_true) * keras.ops.log(1 - y_pred))
    ```

    ## Instead
    ```python
    def weighted_loss(y_true, y_pred):
        return -keras.ops.mean(3 * y_true * keras.ops.log(y_pred) + (1 - y_true) * keras.ops.log(1 - y_pred))
    ```

    ## Thresholds
    Both values differ by more than a thousandth.

    ## Known problems
    Keras on TensorFlow only, under `diagnose run`; one output. Arguments without such names, such as `a` and `b`,
    tell nothing.

    ## Sources
    Keras' guide "Training & evaluation with the built-in methods", "Custom losses".
    """

    severity = "error"
    causes = ("initial-loss-off", "evaluation-at-chance", *NO_LEARNING)

    @check
    def from_names(self, turned: TurnedArguments) -> Finding:
        """Report a loss whose names say the other order."""
        return self.found(
            f"The loss {turned.name}({turned.first}, {turned.second}) names the model's predictions first, and "
            f"Keras calls it with the targets first: {turned.first} holds the targets, {turned.second} the "
            f"predictions. On a batch the loss is {turned.as_called:.4g}; in the order that the names say it "
            f"would be {turned.turned:.4g}.",
            fix=f"def {turned.name}({turned.second}, {turned.first}):",
            evidence={
                "loss": turned.name,
                "arguments": [turned.first, turned.second],
                "as_called": turned.as_called,
                "turned": turned.turned,
            },
        )
