"""See `BroadcastLoss`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.crash import CrashFacts, ShapesDiffer
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts, OutputFacts

Shape = tuple[int | None, ...]  # None: a size that is open, as the batch's is in a graph
ONE_HOT = (
    "loss_fn(prediction, target.argmax(-1)), or target.float(), which CrossEntropyLoss takes for probabilities"
)
ONE_HOT_KERAS = "keras.losses.CategoricalCrossentropy, which reads one-hot targets, or hand over target.argmax(-1)"


class BroadcastLoss(Rule):
    """Prediction and target differ in shape, and the loss stretches them to fit.

    ## What it does
    Compares the shapes of prediction and target where the value of the loss shows that they were broadcast
    against each other. After a crash it names the shapes that could not even be broadcast.

    ## Why it is bad
    A prediction of shape (32, 1) less a target of shape (32,) is a table of 32 by 32 differences: every
    prediction is compared with every target of the batch. The answer that suits all of them best is the mean,
    and that is what the model learns. The loss falls, to the variance of the targets, and looks like a hard
    problem.

    ## Example
    ```python
    prediction = model(features)                       # (32, 1)
    loss = ((prediction - price) ** 2).mean()          # price: (32,)
    ```

    ## Instead
    ```python
    prediction = model(features).squeeze(-1)           # (32,)
    loss = ((prediction - price) ** 2).mean()
    ```

    ## Thresholds
    None: the loss has the value of the broadcast shapes, and not that of matching ones.

    ## Known problems
    Found only for losses that can be recognised by computing them again; `"other"` losses are silent. A target
    that is meant to be shared, one for many predictions, is reported too: repeat it to the full shape where
    that is meant. Keras' own losses bring (n, 1) and (n,) together by themselves; there it takes a loss of
    your own, or a longer axis.

    ## Sources
    The documentation of `torch.nn.functional.mse_loss`, whose warning says of such shapes: "this will likely
    lead to incorrect results due to broadcasting"; NumPy's broadcasting rules.
    """

    severity = "error"
    causes = NO_LEARNING
    no_exhibit = "PyTorch's own loss warns of it in so many words; the bug hides only in a loss of one's own"

    @check
    def from_loss(
        self,
        loss: LossFacts,
        outputs: OutputFacts,
        batch: BatchFacts | None = None,
        model: ModelFacts | None = None,
    ) -> Finding | None:
        """Look at a loss that comes out only of broadcast shapes."""
        if not loss.broadcast:
            return None
        target = None if batch is None or batch.labels is None else batch.labels.shape
        prediction = outputs.shape
        in_keras = model is not None and model.library == "keras"
        shapes = f"The prediction has shape {prediction}"
        shapes += f" and the target {target}." if target else ", and the target another."
        return self.found(
            f"{shapes} The loss stretches them to fit each other{_table(prediction, target)}. What suits all of "
            "them best is one answer for every example, the mean, and that is what the model will learn.",
            fix=_fix(prediction, target, in_keras),
            evidence={"prediction_shape": list(prediction), "target_shape": list(target) if target else None},
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: ShapesDiffer) -> Finding | None:
        """Name the shapes that the loss could not bring together."""
        prediction, target = symptom.prediction, symptom.target
        evidence = {
            "prediction_shape": list(prediction) if prediction is not None else None,
            "target_shape": list(target) if target is not None else None,
        }
        if prediction is not None and prediction == target:
            if len(prediction) < 2:
                return None  # one score for each target: it is not the shapes
            return self.found(
                f"The prediction has shape {prediction} and the target too, but this loss reads class indices: "
                "one number for each prediction, where the target has a vector.",
                fix=ONE_HOT_KERAS if crash.in_keras else ONE_HOT,
                evidence=evidence,
                where=crash.where,
            )
        if prediction is not None and target is not None:
            seen = (
                f"The prediction has shape {prediction} and the target {target}, and the loss cannot bring them "
                f"together{_clash(prediction, target)}."
            )
        else:
            unknown = (
                "could not be read from the exception's frames" if crash.live else "cannot be known from the text"
            )
            seen = f"Prediction and target have shapes that the loss cannot bring together; which ones {unknown}."
        return self.found(
            f"{seen} A loss wants one target for each prediction, along the same axes; where the shapes happen "
            "to stretch to fit, it would compare the wrong ones without a word.",
            fix=_fix_indices(prediction, target, crash.in_keras) or _fix(prediction, target, crash.in_keras),
            evidence=evidence,
            where=crash.where,
        )


def _table(prediction: tuple[int, ...], target: tuple[int, ...] | None) -> str:
    """Say what is compared with what once both are stretched."""
    if target is None:
        return ", and compares values that do not belong together"
    try:
        full = np.broadcast_shapes(prediction, target)
    except ValueError:
        return ", and compares values that do not belong together"
    targets_each = math.prod(full) // max(1, math.prod(prediction))
    predictions_each = math.prod(full) // max(1, math.prod(target))
    what = (
        f"every prediction is compared with {targets_each} targets"
        if targets_each > 1
        else f"every target is compared with {predictions_each} predictions"
    )
    return f", to {full}: {what} instead of its own alone"


def _clash(prediction: Shape, target: Shape) -> str:
    """Say which axis is at fault, where one is."""
    if not prediction or not target:
        return ""
    if _clashing_batches(prediction, target):
        return f": there are {prediction[0]} predictions for {target[0]} targets"
    if len(prediction) == len(target) and prediction[:-1] == target[:-1]:
        return f": for each example there are {prediction[-1]} predictions and {target[-1]} targets"
    return ""


def _fix_indices(prediction: Shape | None, target: Shape | None, in_keras: bool) -> str | None:
    """Say what to do about class indices: in an axis of their own, or fewer than there are predictions."""
    if not prediction or not target or len(prediction) < 2:
        return None
    if len(prediction) > len(target) + 1 and prediction[: len(target)] == target:
        pool = "keras.layers.GlobalAveragePooling1D()" if in_keras else "x.mean(dim=1)"
        return f"bring the axes between batch and outputs down to one row for each target, before the end: {pool}"
    if target != (*prediction[:-1], 1):
        return None
    indices = (
        "take a loss that reads indices (SparseCategoricalCrossentropy)"
        if in_keras
        else "loss_fn(prediction, target.squeeze(-1))"
    )
    return f"if the targets are class indices, {indices}; if they are values, give the last layer one output"


def _clashing_batches(prediction: Shape, target: Shape) -> bool:
    return None not in (prediction[0], target[0]) and prediction[0] != target[0]


def _fix(prediction: Shape | None, target: Shape | None, in_keras: bool) -> str:
    if not prediction or not target:
        return "print both shapes just before the loss, and make them the same"
    squeeze = "keras.ops.squeeze({}, -1)" if in_keras else "{}.squeeze(-1)"
    if prediction == (*target, 1):
        return f"loss_fn({squeeze.format('prediction')}, target)" if not in_keras else squeeze.format("y_pred")
    if target == (*prediction, 1):
        return f"loss_fn(prediction, {squeeze.format('target')})" if not in_keras else squeeze.format("y_true")
    if _clashing_batches(prediction, target):
        return (
            "keep the batch axis first and as it is in every reshape, view or flatten between input and loss: "
            "x.reshape(x.shape[0], -1)"
        )
    if prediction[:-1] == target:
        by_index = "SparseCategoricalCrossentropy" if in_keras else "torch.nn.CrossEntropyLoss"
        return (
            f"if the targets are class indices, take a loss that reads indices ({by_index}); if they are values, "
            "give the last layer one output"
        )
    if prediction[:-1] == target[:-1]:
        return f"give the last layer {target[-1]} {'output' if target[-1] == 1 else 'outputs'}, or mend the target"
    return f"bring the prediction to the shape of the target, {target}"
