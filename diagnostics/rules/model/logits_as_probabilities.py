"""See `LogitsAsProbabilities`."""

from __future__ import annotations

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, NotProbabilities
from diagnostics.facts.pipeline import LossFacts, OutputFacts
from diagnostics.text.join import not_known

# Softmax and sigmoid stay between 0 and 1, and log-probabilities below 0, up to rounding: 1e-7 in float32, 1e-3
# in half precision. Logits exceed that range by far more.
ROUNDING = 1e-3

KERAS_LOSSES = {
    name.replace("_", ""): "".join(part.capitalize() for part in name.split("_"))
    for name in (
        "sparse_categorical_crossentropy",
        "categorical_crossentropy",
        "categorical_focal_crossentropy",
        "binary_crossentropy",
        "binary_focal_crossentropy",
    )
}
"""The class of each Keras loss that has `from_logits`, by its name in lower case without underscores."""


class LogitsAsProbabilities(Rule):
    """The model ends in logits, and the loss reads them as probabilities.

    ## What it does
    Finds out from the settings or the value of the loss what it reads the predictions as, and checks one batch
    of predictions. Probabilities lie between 0 and 1, and over exclusive classes add up to 1; log-probabilities
    are never above 0.

    ## Why it is bad
    Keras clips values outside 0 and 1 before it takes the logarithm, and no gradient passes the clip: an example
    whose true class has a negative logit has a high loss, and training does not raise that logit. Training is
    slow and stops at a poor plateau. PyTorch's `BCELoss` raises `all elements of input should be between 0 and
    1`; its `NLLLoss` is minus the logit of the true class: it decreases without bound, below 0, as all logits
    grow. The string `"sparse_categorical_crossentropy"` hides the setting: it means `from_logits=False`.

    ## Example
    ```python
    model = keras.Sequential([encoder, keras.layers.Dense(3)])
    model.compile(optimizer=keras.optimizers.Adam(5e-5), loss="sparse_categorical_crossentropy")
    ```

    ## Instead
    ```python
    model = keras.Sequential([encoder, keras.layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(5e-5), loss=loss)
    ```

    ## Thresholds
    At least one prediction of the batch must be below 0 or, with a binary loss, above 1; with a loss that reads
    log-probabilities, above 0. By more than 0.001 each, which is the rounding of half precision.

    ## Known problems
    Judged on one batch of an untrained model: logits that all happen to be in the range are not reported, unless
    the last layer is known to be linear. Predictions that are not negative and do not add up to 1, as from a
    sigmoid or softplus, are not reported: Keras divides them by their sum, which gives probabilities. Not judged
    where the setting of the loss is not known.

    ## Sources
    The documentation of `keras.losses.SparseCategoricalCrossentropy` (`from_logits`) and of
    `torch.nn.NLLLoss` ("the input given through a forward call is expected to contain log-probabilities of
    each class"); the Hugging Face course, chapter 8, "Debugging the training pipeline" (TensorFlow).
    """

    severity = "error"
    causes = ("initial-loss-off", "loss-out-of-range", *TOO_LARGE_STEPS)

    @check
    def from_loss(self, loss: LossFacts, outputs: OutputFacts) -> Finding | None:
        """Compare the predictions with what the loss reads them as."""
        if loss.reads is None:
            raise NotApplicable("needs to know whether the loss reads logits or probabilities")
        if outputs.lowest is None or outputs.highest is None:
            raise NotApplicable("needs finite predictions")
        lowest, highest = outputs.lowest, outputs.highest
        if not _impossible(loss, outputs, lowest, highest):
            return None
        named = f"the loss ({loss.name})" if loss.name else "the loss"
        span = f"The model's outputs run from {lowest:.3g} to {highest:.3g}"
        if loss.reads == "log_probabilities":
            message, fix = _not_log_probabilities(span, named, outputs)
        else:
            message, fix = _not_probabilities(span, named, loss)
        return self.found(
            message,
            fix=fix,
            evidence={
                "lowest_output": lowest,
                "highest_output": highest,
                "sums_to_one": outputs.sums_to_one,
                "last_activation": outputs.last_activation,
                "loss": loss.name,
                "loss_reads": loss.reads,
            },
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: NotProbabilities) -> Finding | None:
        """Explain an error of a loss that reads probabilities."""
        reads = "the loss reads probabilities, which lie between 0 and 1"
        if symptom.lowest is not None and symptom.highest is not None:
            seen = (
                f"The model's outputs run from {symptom.lowest:.3g} to {symptom.highest:.3g}: they are logits, "
                f"but {reads}."
            )
        else:
            seen = (
                f"The model's outputs do not all lie between 0 and 1, but {reads}. Usually they are logits; a NaN "
                f"gives the same error. {not_known('which of the two it is', crash.live)}"
            )
        return self.found(
            seen,
            fix="loss_fn = torch.nn.BCEWithLogitsLoss()",
            evidence={"lowest_output": symptom.lowest, "highest_output": symptom.highest},
            where=crash.where,
        )


def _impossible(loss: LossFacts, outputs: OutputFacts, lowest: float, highest: float) -> bool:
    """Whether the predictions cannot be what the loss takes them for."""
    if loss.reads == "logits":
        return False
    if loss.reads == "log_probabilities":
        return highest > ROUNDING
    if lowest < -ROUNDING:
        return True
    if loss.kind == "binary_cross_entropy":
        return highest > 1 + ROUNDING
    return outputs.sums_to_one is False and outputs.last_activation == "linear"


def _not_probabilities(span: str, named: str, loss: LossFacts) -> tuple[str, dict[str, Fix]]:
    must = "lie between 0 and 1"
    if loss.kind == "cross_entropy":
        must += " and add up to 1 over the classes"
    message = (
        f"{span}: they are logits, but {named} reads probabilities, which {must}. It clips other values before it "
        "takes the logarithm, and no gradient passes the clip, so training is slow and stops at a poor plateau."
    )
    binary = loss.kind == "binary_cross_entropy"
    known = KERAS_LOSSES.get((loss.name or "").strip("\"'").replace("_", "").lower())
    keras: Fix = ("give the loss from_logits=True", "give the last layer a softmax activation")
    if known or binary:
        keras = f"loss=keras.losses.{known or 'BinaryCrossentropy'}(from_logits=True)"
    return message, {
        "torch": f"loss_fn = torch.nn.{'BCEWithLogitsLoss' if binary else 'CrossEntropyLoss'}()",
        "keras": keras,
    }


def _not_log_probabilities(span: str, named: str, outputs: OutputFacts) -> tuple[str, dict[str, Fix]]:
    if outputs.sums_to_one:
        return (
            f"{span} and add up to 1: they are probabilities, but {named} reads log-probabilities, which are "
            "never above 0. It uses each probability in place of its logarithm, so a confident mistake costs "
            "hardly more than a small one, and the loss is negative.",
            {"torch": "loss_fn = torch.nn.CrossEntropyLoss(), without the softmax in the model"},
        )
    return (
        f"{span}: they are logits, but {named} reads log-probabilities, which are never above 0. The loss is "
        "minus the logit of the true class, so it decreases without bound as all logits grow, whether or not the "
        "model distinguishes the classes.",
        {"torch": "loss_fn = torch.nn.CrossEntropyLoss()"},
    )
