"""See `LogitsAsProbabilities`."""

from __future__ import annotations

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, NotProbabilities
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OutputFacts

# Softmax and sigmoid stay within 0 and 1, and log-probabilities below 0, up to rounding: 1e-7 in float32, 1e-3 in
# half precision. Logits leave that range by far more.
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
    """The model ends in raw scores (logits), and the loss takes them for probabilities.

    ## What it does
    Looks at what the loss takes the prediction to be, where its settings or its value tell, and whether one
    batch of predictions can be that. Probabilities lie between 0 and 1, and over exclusive classes add up to
    1; their logarithms are never above 0.

    ## Why it is bad
    Keras clips what is no probability to 0 or 1 before it takes the logarithm, and nothing gets a gradient
    through a clip: an example whose true class scores below 0 costs a lot and does not raise that score. The
    model trains, slowly, to a poor plateau. PyTorch's `BCELoss` refuses it, with `all elements of input should
    be between 0 and 1`; its `NLLLoss` takes minus the true class's score as it is:
    making all scores larger without end lowers it, and it goes below 0. A name hides the setting: the string
    `"sparse_categorical_crossentropy"` means `from_logits=False`.

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
    Some prediction of the batch must lie below 0 or, under a binary loss, above 1; under a loss of
    log-probabilities, above 0. By more than 0.001 each, which is the rounding of half precision.

    ## Known problems
    Judged on one batch of an untrained model: logits that all happen to lie in the range are taken for what
    the loss says they are, unless the last layer is known to be linear. Scores that are not negative and do
    not add up to 1, as sigmoid or softplus give them, are left alone: Keras divides them by their sum, and
    that is a probability. Silent where the setting of the loss cannot be seen.

    ## Sources
    The documentation of `keras.losses.SparseCategoricalCrossentropy` (`from_logits`) and of
    `torch.nn.NLLLoss` ("the input given through a forward call is expected to contain log-probabilities of
    each class"); the Hugging Face course, chapter 8, "Debugging the training pipeline" (TensorFlow).
    """

    severity = "error"
    causes = ("initial-loss-off", *TOO_LARGE_STEPS)

    @check
    def from_loss(self, loss: LossFacts, outputs: OutputFacts, model: ModelFacts | None = None) -> Finding | None:
        """Hold the predictions against what the loss takes them to be."""
        if loss.reads is None:
            raise NotApplicable("needs to know what the loss takes the prediction to be")
        if outputs.lowest is None or outputs.highest is None:
            raise NotApplicable("needs finite predictions")
        lowest, highest = outputs.lowest, outputs.highest
        if not _impossible(loss, outputs, lowest, highest):
            return None
        named = f"the loss, {loss.name}," if loss.name else "the loss"
        span = f"The model's outputs run from {lowest:.3g} to {highest:.3g}"
        in_keras = model is not None and model.library == "keras"
        if loss.reads == "log_probabilities":
            message, fix = _not_log_probabilities(span, named, outputs)
        else:
            message, fix = _not_probabilities(span, named, loss, in_keras)
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
        """Say what a loss means that refuses the prediction."""
        must = "the loss takes them for probabilities, which lie between 0 and 1"
        if symptom.lowest is not None and symptom.highest is not None:
            seen = (
                f"The model's outputs run from {symptom.lowest:.3g} to {symptom.highest:.3g}: they are raw scores "
                f"(logits), but {must}."
            )
        else:
            unknown = (
                "could not be read from the exception's frames"
                if crash.live
                else "cannot be known from the text: pass the exception itself to diagnostics.explain"
            )
            seen = (
                f"The model's outputs do not all lie between 0 and 1, but {must}. Most often they are raw scores "
                f"(logits); a NaN among them fails alike. Which it is {unknown}."
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


def _not_probabilities(span: str, named: str, loss: LossFacts, in_keras: bool) -> tuple[str, str]:
    must = "lie between 0 and 1"
    if loss.kind == "cross_entropy":
        must += " and add up to 1 over the classes"
    message = (
        f"{span}: they are raw scores (logits), but {named} takes them for probabilities, which {must}. It cuts "
        "off what is none before it takes the logarithm, and no gradient passes there, so training is slow and "
        "stops at a poor plateau."
    )
    binary = loss.kind == "binary_cross_entropy"
    if not in_keras:
        return message, f"loss_fn = torch.nn.{'BCEWithLogitsLoss' if binary else 'CrossEntropyLoss'}()"
    known = KERAS_LOSSES.get((loss.name or "").strip("\"'").replace("_", "").lower())
    if known or binary:
        return message, f"loss=keras.losses.{known or 'BinaryCrossentropy'}(from_logits=True)"
    return message, "give the loss from_logits=True, or the last layer a softmax activation"


def _not_log_probabilities(span: str, named: str, outputs: OutputFacts) -> tuple[str, str]:
    if outputs.sums_to_one:
        return (
            f"{span} and add up to 1: they are probabilities, but {named} takes them for their logarithms, which "
            "are never above 0. It rewards a probability instead of its logarithm, so a confident mistake costs "
            "next to nothing more than a small one, and the loss is negative.",
            "loss_fn = torch.nn.CrossEntropyLoss(), and take the softmax out of the model",
        )
    return (
        f"{span}: they are raw scores (logits), but {named} takes them for logarithms of probabilities, which are "
        "never above 0. It takes minus the score of the true class as it is, so the loss falls without end if "
        "all scores grow, whether the model tells the classes apart or not.",
        "loss_fn = torch.nn.CrossEntropyLoss()",
    )
