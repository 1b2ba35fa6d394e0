"""See `ProbabilitiesAsLogits`."""

from __future__ import annotations

import math

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.pipeline import LossFacts, OutputFacts

SQUASHING = ("softmax", "sigmoid")


class ProbabilitiesAsLogits(Rule):
    """The model ends in a softmax or sigmoid, and the loss applies another one.

    ## What it does
    If the loss expects logits, the rule checks whether the predictions add up to 1 for every example or come from
    a softmax or sigmoid layer.

    With any loss, it also checks whether the model's last softmax or sigmoid is applied directly to the result of
    another one, as in `Dense(10, activation="softmax")` followed by `Softmax()`.

    ## Why it is bad
    Probabilities differ by at most 1, so a softmax over them is never confident: with 3 classes, the true class
    gets a probability of at most 0.58, so the cross entropy is at least 0.55. Training is slow and gets stuck at a
    plateau. The accuracy often looks acceptable, so the bug goes unnoticed.

    ## Example
    ```python
    model = nn.Sequential(encoder, nn.Linear(512, 3), nn.Softmax(dim=-1))
    loss = nn.CrossEntropyLoss()(model(inputs), labels)      # applies log_softmax itself
    ```

    ## Instead
    ```python
    model = nn.Sequential(encoder, nn.Linear(512, 3))
    # apply softmax only to display probabilities
    loss = nn.CrossEntropyLoss()(model(inputs), labels)
    ```

    ## Thresholds
    The predictions must be non-negative and add up to 1 for every example in the batch, up to rounding errors. A
    model whose last layer is known to be a softmax or sigmoid is reported regardless of its predictions.

    The finding gives the lowest loss that such a model can reach: ln(1 + (C - 1)/e) for C classes. For a binary
    loss, it is ln(1 + 1/e) = 0.31 where the target is 1, and ln 2 = 0.69 where the target is 0.

    ## Known problems
    A sigmoid that is called as a function instead of a layer is not detected. If a loss with `from_logits=True`
    directly follows a softmax or sigmoid, Keras on TensorFlow bypasses that activation and only warns. This
    combination is not reported.

    ## Sources
    The documentation for `torch.nn.CrossEntropyLoss` ("the input is expected to contain the unnormalized logits
    for each class") and `torch.nn.BCEWithLogitsLoss`; the documentation for `keras.losses.CategoricalCrossentropy`
    (`from_logits`).
    """

    severity = "warning"
    causes = ("initial-loss-off", "learning-rate-too-low", "vanishing-gradients", *NO_LEARNING)

    @check
    def from_loss(self, loss: LossFacts, outputs: OutputFacts) -> Finding | None:
        """Look for probabilities where the loss reads logits."""
        if outputs.applied_to in SQUASHING and outputs.last_activation in (*SQUASHING, "logsoftmax"):
            return self._twice(outputs.last_activation, outputs.applied_to, outputs.num_classes)
        if loss.reads is None:
            raise NotApplicable("it is not known whether the loss expects logits or probabilities")
        if loss.reads != "logits" or outputs.non_finite_rows:
            return None
        last = outputs.last_activation if outputs.last_activation in ("softmax", "sigmoid") else None
        if last is None and not outputs.sums_to_one:
            return None
        binary = loss.kind == "binary_cross_entropy"
        again = "sigmoid" if binary else "softmax"
        seen = "The model's outputs add up to 1 for every example, so they are"
        if last:
            seen = f"The model ends in a {last}, so its outputs are"
        named = f"the loss ({loss.name})" if loss.name else "the loss"
        applies = f"another {again}" if (last or "softmax") == again else f"a {again} to them"
        return self.found(
            f"{seen} probabilities, but {named} expects logits and applies {applies}. A {again} of values "
            f"between 0 and 1 is never confident: {_best(binary, outputs.num_classes)}. Training is slow and "
            "plateaus early.",
            fix=_fixes(last or "softmax"),
            evidence={
                "last_activation": outputs.last_activation,
                "sums_to_one": outputs.sums_to_one,
                "num_classes": outputs.num_classes,
                "loss": loss.name,
                "loss_reads": loss.reads,
            },
        )

    def _twice(self, last: str, before: str, classes: int | None) -> Finding:
        binary = last == "sigmoid"
        again = "sigmoid" if binary else "softmax"
        return self.found(
            f"The model applies two activations in a row: its last {last} gets the output of a {before}, which is "
            f"already a probability. A {again} of values between 0 and 1 is never confident: "
            f"{_best(binary, classes)}. Training is slow and plateaus early.",
            fix={
                "torch": f"remove one of the two: the earlier {before} or the final {last}",
                "keras": f'remove one of the two: activation="{before}" or the {last} layer after it',
            },
            evidence={"last_activation": last, "applied_to": before, "num_classes": classes},
        )


def _best(binary: bool, classes: int | None) -> str:
    """Report the lowest possible loss of one example."""
    if binary:
        low, high = math.log(1 + 1 / math.e), math.log(2)
        return f"the lowest possible loss is {low:.2f} where the target is 1, and {high:.2f} where it is 0"
    if classes is None or classes < 2:
        return "even a perfect prediction has a loss above 0"
    best = math.log(1 + (classes - 1) / math.e)
    return (
        f"with {classes} classes, the true class gets a probability of at most {math.exp(-best):.2f}, so the loss "
        f"cannot fall below {best:.2f}"
    )


def _fixes(last: str) -> dict[str, Fix]:
    return {
        "torch": f"remove the {last} from the model; apply it only to display or compare probabilities",
        "keras": (f"remove the {last} from the last layer (activation=None)", "set from_logits=False in the loss"),
    }
