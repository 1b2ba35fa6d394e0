"""See `ExamplesMixed`."""

from __future__ import annotations

import math
from typing import Final

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding, Severity
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.dependence import DependenceFacts, MixingFacts

# Share of the predictions' root mean square. With equal shapes, float32 differs by about 1e-6 or not at all.
CLEAR = 1e-4

BY_KIND: Final[dict[str, dict[str, Fix]]] = {
    "softmax": {
        "torch": "softmax(dim=-1)  # over the classes of each example",
        "keras": "keras.ops.softmax(x, axis=-1)  # over the classes of each example",
    },
    "reshape": {
        "torch": (
            "move axes with x.transpose(…) or x.permute(…), not with view",
            "keep the batch axis: x.flatten(1)",
        ),
        "keras": "move axes with keras.ops.transpose(x, axes), not with reshape",
    },
    "recurrent": {
        "torch": (
            "create the layer with batch_first=True",
            "transpose the input: x = x.transpose(0, 1)  # (time, batch, features)",
        )
    },
    "attention": {
        "torch": (
            "create the layer with batch_first=True",
            "transpose the input: x = x.transpose(0, 1)  # (positions, batch, features)",
        )
    },
}
GENERAL: Final = (
    "run the model on 8 examples, then replace all but the first, run it again, and compare the first row "
    "after each layer: the first layer whose output changes mixes the examples"
)


class ExamplesMixed(Rule):
    """The prediction for one example depends on the other examples in its batch.

    ## What it does
    Runs a copy of the model in evaluation mode on a few examples of one batch, replaces all of them except one,
    and checks whether the prediction for that one changes. If the prediction changes, the rule looks for an
    operation along the batch axis, such as a softmax, or an LSTM that treats the batch axis as time.

    ## Why it is bad
    A softmax over the batch makes the examples compete for each class; an LSTM without `batch_first` treats the
    batch as one sequence. The loss may still fall, but at inference the same example gets a different prediction
    in a different batch.

    ## Example
    ```python
    lstm = nn.LSTM(6, 32)                        # takes (time, batch, features)
    states, _ = lstm(series)                     # series is (batch, time, features)
    ```

    ## Instead
    ```python
    lstm = nn.LSTM(6, 32, batch_first=True)
    ```

    ## Thresholds
    The prediction must change by more than 1/10000 of the root mean square of the predictions. The finding is an
    error if runs with two batch sizes identify the operation, and this operation cannot be intentional. For
    attention, and for a softmax inside the model, the finding is a warning if the rows are known to be shuffled.
    In all other cases it is a note.

    ## Known problems
    Some models mix examples on purpose, for example through attention between rows, minibatch statistics in a
    discriminator, or experts with limited capacity. For such models, the finding is often only a note. Models
    whose rows are nodes of a graph are not checked.

    ## Sources
    The documentation for `torch.nn.LSTM` (`batch_first`) and `torch.nn.Softmax` (`dim`); Andrej Karpathy, "A
    Recipe for Training Neural Networks" (2019), "use backprop to chart dependencies".
    """

    severity = "error"
    causes = ("initial-loss-off", *NO_LEARNING)

    @check
    def from_answers(self, dependence: DependenceFacts) -> Finding | None:
        """Compare the prediction for one example before and after replacing the others."""
        change, spread, scale = dependence.change, dependence.spread, dependence.scale
        if change is None or spread is None or scale is None:
            raise NotApplicable(dependence.why_not.get("examples", "needs a batch of at least 4 examples"))
        if not math.isfinite(change):
            return None
        if change <= CLEAR * scale:
            return self._by_place(dependence)
        mixing = dependence.mixing
        others = dependence.compared - 1
        return self.found(
            f"Replacing the other {others} examples in the batch changes the prediction for an example by "
            f"{change:.2g}; for comparison, predictions for different examples differ by {spread:.2g}. "
            f"{_explained(mixing, dependence.ends_in_it)}",
            fix=GENERAL if mixing is None else _fix(mixing),
            severity=_severity(dependence),
            where=None if mixing is None else mixing.where,
            evidence={
                "change": change,
                "spread": spread,
                "examples": dependence.compared,
                "operation": None if mixing is None else mixing.kind,
                "layer": None if mixing is None else mixing.name,
            },
        )

    def _by_place(self, dependence: DependenceFacts) -> Finding | None:
        """Report predictions that depend on the position of their example in the batch."""
        moved, scale = dependence.moved, dependence.scale
        if moved is None or scale is None or not CLEAR * scale < moved < math.inf:
            return None
        return self.found(
            "The prediction for an example depends on its position in the batch: reversing the order of the "
            f"{dependence.compared} examples changes it by {moved:.2g}; for comparison, predictions for "
            f"different examples differ by {dependence.spread:.2g}. The model uses the row index: it counts "
            "positions along the batch axis, or treats part of the batch differently.",
            fix=(
                "index positional encodings by time: pe[:, : x.size(1)] for inputs of shape (batch, time, "
                "features)",
                "index positional encodings by time: pe[: x.size(0)] for inputs of shape (time, batch, features)",
            ),
            severity="warning" if dependence.shuffled else "note",
            evidence={"moved": moved, "spread": dependence.spread, "examples": dependence.compared},
        )


def _fix(mixing: MixingFacts) -> dict[str, Fix]:
    """Return what to write instead; for a view whose shapes show which axes were meant, that very call."""
    shape, result, axis = mixing.shape, mixing.result, mixing.axis
    if mixing.kind != "reshape":
        return BY_KIND[mixing.kind]
    if sorted(shape) == sorted(result) and len(set(shape)) == len(shape):
        order = ", ".join(str(shape.index(size)) for size in result)
        return {
            "torch": f"use x.permute({order}) instead of view",
            "keras": f"use keras.ops.transpose(x, ({order})) instead of reshape",
        }
    if axis > 0 and len(result) == 2 and result[0] == shape[axis]:
        moved = "x.transpose(0, 1)" if axis == 1 else f"x.movedim({axis}, 0)"
        return {
            "torch": f"use {moved}.flatten(1) instead of view",
            "keras": f"call keras.ops.moveaxis(x, {axis}, 0) before the reshape",
        }
    return BY_KIND["reshape"]


def _severity(dependence: DependenceFacts) -> Severity:
    mixing = dependence.mixing
    if mixing is None:
        return "note"
    if mixing.kind == "reshape" or (mixing.kind == "softmax" and dependence.ends_in_it):
        return "error"
    if mixing.kind == "recurrent":
        # A single series, (time, 1, features), has its steps on the axis that is otherwise the batch.
        return "error" if dependence.shuffled or mixing.shape[1 - mixing.axis] > 1 else "note"
    return "warning" if dependence.shuffled else "note"


def _explained(mixing: MixingFacts | None, ends_in_it: bool) -> str:
    if mixing is None:
        return (
            "Some operation in the model works along the batch axis. Unless this is intended, the other examples "
            "in the batch are only noise."
        )
    shape, axis = mixing.shape, mixing.axis
    match mixing.kind:
        case "softmax":
            of = "The predictions sum to 1 over the batch, not over the classes: a" if ends_in_it else "A"
            return f"{of} softmax on a tensor of shape {shape} runs over axis {axis}, the batch axis."
        case "reshape":
            return (
                f"A view turns shape {shape} into {mixing.result}. A view keeps the order of the elements and "
                "does not move axes, so each row of the result mixes several examples."
            )
        case "recurrent":
            return (
                f"{mixing.name} gets an input of shape {shape} and runs along axis {axis}, the batch axis: it "
                "reads the batch as one sequence."
            )
        case "attention":
            return (
                f"{mixing.name} gets an input of shape {shape} and attends along axis {axis}, the batch axis: "
                "each example attends to the other examples in its batch, not to its own positions."
            )
