"""See `ProbabilitiesAsLogits`."""

from __future__ import annotations

import math

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OutputFacts


class ProbabilitiesAsLogits(Rule):
    """A softmax or sigmoid ends the model, and the loss applies another one on top.

    ## What it does
    Looks at predictions that the loss takes for raw scores (logits), where its settings or its value tell that
    it does: do they add up to 1 for every example, or come from a softmax or sigmoid layer?

    ## Why it is bad
    Probabilities differ by 1 at most, so a softmax over them can never be sure: with 3 classes it gives the
    right one 0.58 at best, where the cross entropy is 0.55. The gradient has to pass two squashing
    functions. Training is slow and stops at a plateau; the accuracy often looks passable, and so the bug stays.

    ## Example
    ```python
    model = nn.Sequential(encoder, nn.Linear(512, 3), nn.Softmax(dim=-1))
    loss = nn.CrossEntropyLoss()(model(inputs), labels)      # applies log_softmax itself
    ```

    ## Instead
    ```python
    model = nn.Sequential(encoder, nn.Linear(512, 3))
    loss = nn.CrossEntropyLoss()(model(inputs), labels)      # softmax only where probabilities are shown
    ```

    ## Thresholds
    None of ours: predictions must be non-negative and add up to 1 for every example of the batch, up to
    rounding, which logits do not do by chance; or the last layer must be known to be a softmax or sigmoid.
    The floor in the message is that of one example whose true class has probability 1 and all others 0:
    ln(1 + (C - 1)/e) for C classes. A binary loss costs ln(1 + 1/e) = 0.31 at least where the target is 1,
    and ln 2 = 0.69 where it is 0.

    ## Known problems
    A warning, not an error: such a model does learn, and its largest output is often the right one. A sigmoid
    that is computed by a function instead of a layer cannot be seen, for logits between 0 and 1 look the same.
    Keras on TensorFlow undoes a softmax or sigmoid that stands directly before a loss with `from_logits=True`,
    with no more than a warning. That trains right and is no alarm: the loss then reads probabilities.

    ## Sources
    The documentation of `torch.nn.CrossEntropyLoss` ("the input is expected to contain the unnormalized
    logits for each class") and of `torch.nn.BCEWithLogitsLoss`; of `keras.losses.CategoricalCrossentropy`
    (`from_logits`).
    """

    severity = "warning"
    causes = ("initial-loss-off", "learning-rate-too-low", "vanishing-gradients", *NO_LEARNING)
    no_exhibit = "the opposite mistake, logits as probabilities, has the exhibit: it does more harm"

    @check
    def from_loss(self, loss: LossFacts, outputs: OutputFacts, model: ModelFacts | None = None) -> Finding | None:
        """Look for probabilities where the loss wants logits."""
        if loss.reads is None:
            raise NotApplicable("needs to know what the loss takes the prediction to be")
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
        named = f"the loss, {loss.name}," if loss.name else "the loss"
        return self.found(
            f"{seen} probabilities already; but {named} takes them for raw scores (logits) and "
            f"applies a {again} to them. Probabilities lie between 0 and 1, and of those a {again} can never be "
            f"sure: {_best(binary, outputs.num_classes)}. Training is slow and stops at a plateau.",
            fix=_fix(last or "softmax", loss, model),
            evidence={
                "last_activation": outputs.last_activation,
                "sums_to_one": outputs.sums_to_one,
                "num_classes": outputs.num_classes,
                "loss": loss.name,
                "loss_reads": loss.reads,
            },
        )


def _best(binary: bool, classes: int | None) -> str:
    """Say how low the loss of one example can get."""
    if binary:
        low, high = math.log(1 + 1 / math.e), math.log(2)
        return f"the best answer costs {low:.2f} where the target is 1, and {high:.2f} where it is 0"
    if classes is None or classes < 2:
        return "even the best answer costs something"
    best = math.log(1 + (classes - 1) / math.e)
    return f"with {classes} classes it gives the right one {math.exp(-best):.2f} at best, a loss of {best:.2f}"


def _fix(last: str, loss: LossFacts, model: ModelFacts | None) -> str:
    if model is not None and model.library == "keras":
        return f"take the {last} out of the last layer (activation=None), or give the loss from_logits=False"
    return f"take the {last} out of the model, and apply it only where probabilities are shown or compared"
