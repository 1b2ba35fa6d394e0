"""See `LogitsAsProbabilities`."""

from __future__ import annotations

from collections.abc import Iterator

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, NotApplicable, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.data import NotProbabilities
from diagnostics.facts.loss_call import LossCall, LossCalls
from diagnostics.facts.loss_contracts import KERAS, function_of
from diagnostics.facts.loss_graph import LONGEST, LossGraph
from diagnostics.facts.pipeline import LossFacts, OutputFacts, SeveralOutputs
from diagnostics.rules.shared.first_found import first_found, first_output_found
from diagnostics.text.join import capitalized, not_known

# Softmax and sigmoid stay between 0 and 1, and log-probabilities below 0, up to rounding: 1e-7 in float32, 1e-3
# in half precision. Logits exceed that range by far more.
ROUNDING = 1e-3

FRAMES = 64  # of a batch of sequences, whose scores are read
ADDS_UP = 0.1  # of a sum of probabilities: in bfloat16 their logarithms are known to 1%

# Functions of a last layer that never yield probabilities, whatever the range in one batch.
UNBOUNDED = frozenset({"relu", "leaky_relu", "elu", "selu", "gelu", "silu", "swish", "tanh"})

SOFTMAX = "remove the sigmoid from the model, and use loss_fn = torch.nn.CrossEntropyLoss()"

WITHIN = ("Add", "Sub", "Mul", "Mean")  # operations of a numerator or denominator around its sums
LAID_OUT = ("View", "Clone", "Squeeze")
RAW = {"Convolution": 1, "Addmm": 2}
"""What computes outputs that may be negative, and which of its operands is the weight."""

RESIZED = ("UpsampleBilinear2D", "UpsampleNearest2D")


class LogitsAsProbabilities(MessageRule):
    """The loss expects probabilities, but the model outputs logits or other unbounded values.

    ## What it does
    Infers from the settings or the value of the loss whether it expects probabilities, log-probabilities or
    logits, then checks one batch of predictions and the last activation. For `ctc_loss`, the rule checks the
    values passed to the first call. For a custom loss, such as a Dice or Jaccard loss, it examines the graph of
    the loss.

    ## Why it is bad
    Keras clips predictions to the range from 0 to 1 before it takes the logarithm, and no gradient passes through
    the clip. An example whose true class has a negative logit therefore gets no gradient. Training is slow and
    gets stuck at a high loss. The string `"sparse_categorical_crossentropy"` hides the setting: it means
    `from_logits=False`.

    PyTorch's `BCELoss` raises `all elements of input should be between 0 and 1`. `NLLLoss` raises no error: it
    returns minus the logit of the true class, which keeps falling as all logits grow.

    ## Example
    ```python
    model = keras.Sequential([encoder, keras.layers.Dense(3)])
    optimizer = keras.optimizers.Adam(5e-5)
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")
    ```

    ## Instead
    ```python
    model = keras.Sequential([encoder, keras.layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(5e-5), loss=loss)
    ```

    ## Thresholds
    At least one prediction in the batch must be below 0 or, with a binary loss, above 1. For a loss that expects
    log-probabilities, at least one prediction must be above 0. The tolerance is 0.001. A model that ends in a ReLU
    or tanh is also reported if its loss expects probabilities.

    If a sigmoid for several classes is combined with categorical cross entropy, the finding is a warning: Keras
    computes the loss from the logits, so the model learns, but `predict` returns values that were never trained.

    ## Known problems
    Only one batch of an untrained model is checked. Logits that happen to be in range are reported only if the
    last layer is known to be linear. Non-negative predictions that do not add up to 1, such as those of a
    softplus, are not reported, because Keras divides them by their sum.

    ## Sources
    The documentation for `keras.losses.SparseCategoricalCrossentropy` (`from_logits`) and `torch.nn.NLLLoss` ("the
    input given through a forward call is expected to contain log-probabilities of each class"); the Hugging Face
    course, chapter 8, "Debugging the training pipeline" (TensorFlow).
    """

    severity = "error"
    causes = ("initial-loss-off", "loss-out-of-range", *TOO_LARGE_STEPS)

    @check
    def from_loss(self, loss: LossFacts, outputs: OutputFacts) -> Finding | None:
        """Compare the predictions with what the loss expects."""
        if outputs.num_classes == 1:
            return None  # a single class: targets-out-of-reach reports it
        if _is_sigmoid_over_classes(loss, outputs):
            return self._sigmoid_over_classes(loss, outputs)
        if loss.reads is None:
            raise NotApplicable("needs a loss that is known to expect logits or probabilities")
        if outputs.lowest is None or outputs.highest is None:
            raise NotApplicable("needs finite predictions")
        lowest, highest = outputs.lowest, outputs.highest
        if not _impossible(loss, outputs, lowest, highest):
            return None
        named = _named(loss)
        span = f"The model's outputs range from {lowest:.3g} to {highest:.3g}"
        if loss.reads == "log_probabilities":
            message, fix = _not_log_probabilities(span, named, outputs)
        else:
            ended = outputs.last_activation if outputs.last_activation in UNBOUNDED else None
            within = outputs.sums_to_one is False and lowest >= -ROUNDING and highest <= 1 + ROUNDING
            if within and ended is None:
                span = f"{span} and do not sum to 1 over the classes"
            message, fix = _not_probabilities(span, named, loss, ended)
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
    def from_overlap(self, graph: LossGraph) -> Finding | None:
        """Report an overlap such as Dice computed from outputs without a sigmoid or softmax."""
        overlaps = _overlaps(graph)
        if not overlaps:
            raise NotApplicable
        raw = next((source for source in overlaps if _may_be_negative(graph, source)), None)
        if raw is None:
            return None
        shape = graph.nodes[raw].shape or ()
        return self.found(
            "The loss is an overlap ratio such as Dice or Jaccard: it multiplies the outputs by the targets, adds "
            "up the products, and divides by a total that includes the outputs. These outputs, of shape "
            f"{shape}, come straight from a linear layer or convolution, so they may be negative or greater than "
            "1. In that case, the ratio does not measure overlap: it improves as the outputs grow at any "
            "position, and jumps where their sum crosses 0.",
            fix=(
                "probabilities = torch.sigmoid(outputs)  # binary: one foreground class",
                "probabilities = outputs.softmax(dim=1)  # multi-class",
            ),
            evidence={"shape": list(shape)},
        )

    @check
    def from_calls(self, calls: LossCalls) -> Finding | None:
        """Report a CTC loss on scores whose exponentials do not add up to 1."""
        return first_found(calls.calls, self._aligned)

    def _aligned(self, call: LossCall) -> Finding | None:
        import numpy as np  # explaining a crash needs none of it

        given = call.prediction
        if call.contract.targets != "labels" or given is None or given.values.ndim < 2:
            raise NotApplicable
        values = given.values.reshape(-1, given.values.shape[-1])[:FRAMES]
        known = values[values > -np.inf]
        if not known.size or not values.max() < np.inf:
            raise NotApplicable("needs finite predictions")
        with np.errstate(all="ignore"):
            if (np.abs(np.exp(values).sum(axis=-1) - 1) <= ADDS_UP).all():
                return None
        lowest, highest = float(known.min()), float(known.max())
        span = f"{lowest:.3g} to {highest:.3g}"
        probabilities = bool((values >= 0).all() and (np.abs(values.sum(axis=-1) - 1) <= ADDS_UP).all())
        if probabilities:
            seen, fix = f"probabilities ({span}, summing to 1)", "log_probs = probabilities.log()"
        else:
            seen, fix = f"scores (from {span})", "log_probs = scores.log_softmax(dim=-1)"
        return self.found(
            f"{call.function} got {seen}, but it expects log-probabilities, whose exponentials sum to 1 over "
            "the classes. With such inputs, the loss falls as all values grow, and eventually becomes negative, "
            "whether or not the model distinguishes the classes.",
            fix=fix,
            evidence={
                "lowest": lowest,
                "highest": highest,
                "made": "probabilities" if probabilities else "scores",
            },
        )

    @check
    def from_outputs(self, several: SeveralOutputs) -> Finding | None:
        """Compare the predictions of each output with what its loss expects."""
        return first_output_found(several, lambda part: self.from_loss(part.loss, part.outputs))

    def _sigmoid_over_classes(self, loss: LossFacts, outputs: OutputFacts) -> Finding:
        classes = outputs.num_classes
        return self.found(
            f"The model ends in a sigmoid for each of {classes} classes, but each example has exactly one class. "
            f"{capitalized(_named(loss))} expects probabilities that sum to 1 over the classes. "
            f"{_TRAINED[loss.reads is None]} The model's predictions, one sigmoid per class, do not sum to "
            "1 and are not trained to be probabilities.",
            fix={"keras": f'keras.layers.Dense({classes}, activation="softmax")', "torch": SOFTMAX},
            evidence={
                "last_activation": outputs.last_activation,
                "sums_to_one": outputs.sums_to_one,
                "num_classes": classes,
                "loss": loss.name,
            },
            severity="warning",
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: NotProbabilities) -> Finding | None:
        """Explain an error of a loss that reads probabilities."""
        reads = "the loss expects probabilities"
        if symptom.lowest is not None and symptom.highest is not None:
            seen = (
                f"The model's outputs range from {symptom.lowest:.3g} to {symptom.highest:.3g}: they are "
                f"logits, but {reads}, which lie between 0 and 1."
            )
        else:
            seen = (
                f"{capitalized(reads)}, but not all of the model's outputs lie between 0 and 1. Usually the "
                f"outputs are logits; a NaN causes the same error. {not_known('the values', crash.live)}"
            )
        return self.found(
            seen,
            fix="loss_fn = torch.nn.BCEWithLogitsLoss()",
            evidence={"lowest_output": symptom.lowest, "highest_output": symptom.highest},
            where=crash.where,
        )


_TRAINED = {
    True: "Keras computes the loss from a softmax over the values before the sigmoid.",
    False: "The loss first divides the outputs by their sum.",
}


def _named(loss: LossFacts) -> str:
    return f"the loss ({loss.name.removeprefix('loss=')})" if loss.name else "the loss"


def _is_sigmoid_over_classes(loss: LossFacts, outputs: OutputFacts) -> bool:
    """Return whether independent sigmoids predict exclusive classes, under a loss that does not read logits."""
    exclusive = loss.kind == "cross_entropy" and outputs.num_classes is not None and outputs.num_classes > 1
    sigmoid = outputs.last_activation == "sigmoid" and outputs.sums_to_one is False
    return exclusive and sigmoid and loss.reads not in ("logits", "log_probabilities")


def _impossible(loss: LossFacts, outputs: OutputFacts, lowest: float, highest: float) -> bool:
    """Return whether the predictions cannot be what the loss expects."""
    if loss.reads == "logits":
        return False
    if loss.reads == "log_probabilities":
        return highest > ROUNDING
    if lowest < -ROUNDING or (outputs.last_activation in UNBOUNDED and not outputs.sums_to_one):
        return True
    if loss.kind == "binary_cross_entropy":
        return highest > 1 + ROUNDING
    return outputs.sums_to_one is False and outputs.last_activation == "linear"


def _not_probabilities(span: str, named: str, loss: LossFacts, ended: str | None) -> tuple[str, dict[str, Fix]]:
    """Return message and fix; `ended`: a function of the last layer that does not yield logits either."""
    binary = loss.kind == "binary_cross_entropy"
    must = "lie between 0 and 1" + ("" if binary else " and sum to 1 over the classes")
    last = f"The model's last activation is {ended}, and its{span[11:]}"
    seen = f"{span}: they are logits" if ended is None else last
    message = (
        f"{seen}, but {named} expects probabilities, which {must}. The loss clips values outside this range "
        "before taking the logarithm, and clipped values get no gradient, so training is slow and "
        "plateaus early."
    )
    name = (loss.name or "").removeprefix("loss=").partition("(")[0]
    contract = KERAS.get(function_of(name.strip("\"'")))
    known = contract.module if contract is not None and contract.module.endswith("Crossentropy") else ""
    torch = f"loss_fn = torch.nn.{'BCEWithLogitsLoss' if binary else 'CrossEntropyLoss'}()"
    if ended is not None:
        proper = "sigmoid" if binary else "softmax"
        return message, {
            "torch": f"remove the {ended} at the end of the model, and use {torch}",
            "keras": f'set activation="{proper}" instead of "{ended}" in the last layer',
        }
    keras: Fix = ("pass from_logits=True to the loss", "give the last layer a softmax activation")
    if known or binary:
        keras = f"loss=keras.losses.{known or 'BinaryCrossentropy'}(from_logits=True)"
    return message, {"torch": torch, "keras": keras}


def _not_log_probabilities(span: str, named: str, outputs: OutputFacts) -> tuple[str, dict[str, Fix]]:
    if outputs.sums_to_one:
        return (
            f"{span} and sum to 1: they are probabilities, but {named} expects log-probabilities, which are "
            "never above 0. The loss uses each probability instead of its logarithm, so a confident "
            "mistake costs barely more than a small one, and the loss is negative.",
            {"torch": "remove the softmax from the model; torch.nn.CrossEntropyLoss() applies it"},
        )
    return (
        f"{span}: they are logits, but {named} expects log-probabilities, which are never above 0. The loss is "
        "minus the logit of the true class, so it decreases without bound as all logits grow, whether or "
        "not the model distinguishes the classes.",
        {"torch": "loss_fn = torch.nn.CrossEntropyLoss()"},
    )


def _overlaps(graph: LossGraph) -> list[int]:
    """Return the nodes that a ratio is made of: of the sum of their numbers times a constant, and of their sum."""
    found = []
    for node in graph.nodes:
        if node.operation == "Div" and len(node.trained) == 2:
            above, below = (dict(_summed(graph, part)) for part, _ in node.trained)
            found += [source for source, weighed in above.items() if weighed and below.get(source) is False]
    return found


def _summed(graph: LossGraph, index: int) -> Iterator[tuple[int, bool]]:
    """Yield what is summed in an expression, and whether it is multiplied before."""
    waiting, seen = [index], 0
    while waiting and seen < LONGEST:
        one, seen = graph.nodes[waiting.pop()], seen + 1
        if one.operation in WITHIN:
            waiting += [operand for operand, _ in one.trained]
        elif one.operation == "Sum":
            *through, source = graph.chain(one.trained[0][0], (*LAID_OUT, "Mul"))
            yield source, any(graph.nodes[step].operation == "Mul" for step in through)


def _may_be_negative(graph: LossGraph, index: int) -> bool:
    """Return whether a trained layer computed this; a fixed filter keeps probabilities positive."""
    layer = graph.nodes[graph.source(index, RESIZED)]
    weight = RAW.get(layer.operation)
    return weight is not None and len(layer.operands) > weight and layer.operands[weight].node is not None
