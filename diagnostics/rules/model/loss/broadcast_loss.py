"""See `BroadcastLoss`."""

from __future__ import annotations

import math

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.data import ShapesDiffer
from diagnostics.facts.loss_graph import LossGraph
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.rules.shared import broadcast_operands
from diagnostics.rules.shared.loss_shapes import Shape, after_crash, clashing_batches, fix_shapes
from diagnostics.text.join import count_of, not_known

INDICES = (
    "target = target.squeeze(1)  # indices of shape (n, 1)",
    "target = target.argmax(dim=1)  # one-hot rows",
    "if the target is a mask of colours, replace each colour with its class index",
)
ONE_HOT = {
    "torch": (
        "loss_fn(prediction, target.argmax(-1))",
        "pass target.float() to the loss, which then interprets the targets as probabilities",
    ),
    "keras": (
        "for one-hot targets, use keras.losses.CategoricalCrossentropy",
        "pass target.argmax(-1) to the loss",
    ),
}
OF_SEQUENCES = (  # of a loss that reads one class index per example; the row of the message says the same
    "set return_sequences=False in the last recurrent layer",
    "add keras.layers.GlobalAveragePooling1D() before the last layer",
    "add keras.layers.Flatten() before the last layer",
)
SPARSE = (  # the row of the message, which the page for pasted errors reads, says the same
    "for one-hot targets, use keras.losses.CategoricalCrossentropy",
    "pass target.argmax(-1) to the loss, if the target is one-hot",
    "if the target has too few axes, add keras.layers.Flatten() before the last layer",
    "if each sequence has one target, set return_sequences=False in the last recurrent layer",
)


class BroadcastLoss(MessageRule):
    """Prediction and target have different shapes, and the loss broadcasts them.

    ## What it does
    Compares the shapes of prediction and target if the value of the loss shows that they were broadcast, or if the
    graph of the loss contains their difference. In the graph of the first loss, the rule also looks for products
    of two per-example values, such as a log-probability and an advantage. In a step that TensorFlow traced, it
    looks for `tf.gather` without `batch_dims`, as of the values of the actions that were taken. After a crash, it
    names the shapes that could not be broadcast.

    ## Why it is bad
    A prediction of shape (32, 1) minus a target of shape (32,) is a matrix of 32 by 32 differences: every
    prediction is compared with every target in the batch. The model therefore learns to predict the mean. The loss
    falls to the variance of the targets, so the task merely looks hard.

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
    None: the value or the graph of the loss proves that the shapes were broadcast.

    ## Known problems
    A target that many predictions share on purpose is reported too; expand it to the full shape.

    Keras' built-in losses reshape `(n, 1)` and `(n,)` to match. In Keras, the bug requires a custom loss, or an
    extra axis such as the time steps of a recurrent layer with `return_sequences=True`.

    ## Sources
    The documentation for `torch.nn.functional.mse_loss`, whose warning says of such shapes: "this will likely lead
    to incorrect results due to broadcasting"; NumPy's broadcasting rules.
    """

    severity = "error"
    causes = NO_LEARNING

    @check
    def from_loss(self, loss: LossFacts, outputs: OutputFacts, batch: BatchFacts | None = None) -> Finding | None:
        """Report a loss whose value only broadcast shapes can give."""
        if not loss.broadcast:
            return None
        target = None if batch is None or batch.labels is None else batch.labels.shape
        prediction = outputs.shape
        if target is not None and _shares_its_target(prediction, target):
            return self._several_answers(prediction, target)
        shapes = f"The prediction has shape {prediction}"
        shapes += f" and the target has shape {target}." if target else ", and the target has a different shape."
        return self.found(
            f"{shapes} The loss broadcasts them{_table(prediction, target)}. Predicting the mean for every "
            "example minimises this loss, so that is what the model will learn.",
            fix={library: fix_shapes(prediction, target, library == "keras") for library in ("torch", "keras")},
            evidence={"prediction_shape": list(prediction), "target_shape": list(target) if target else None},
        )

    def _several_answers(self, prediction: tuple[int, ...], target: tuple[int, ...]) -> Finding:
        each = math.prod(prediction[1:])
        return self.found(
            f"The prediction has shape {prediction} and the target has shape {target}: each example has {each} "
            "predictions, one per position of its input, but a single target. The loss compares every prediction "
            "with that target. Each prediction depends at most on its own position and the earlier ones, not on "
            "the whole input.",
            fix={
                "torch": "pool or flatten the positions before the last layer: x.flatten(1) or x.mean(dim=1)",
                "keras": (
                    "add keras.layers.Flatten() before the Dense layers",
                    "set return_sequences=False in the last recurrent layer",
                    "add keras.layers.GlobalAveragePooling1D() before the last layer",
                ),
            },
            evidence={"prediction_shape": list(prediction), "target_shape": list(target)},
        )

    @check
    def from_difference(self, graph: LossGraph, loss: LossFacts | None = None) -> Finding | None:
        """Report the difference of a column and a row, which no loss over a whole batch intends."""
        if (loss is not None and loss.broadcast) or (found := broadcast_operands.difference(graph)) is None:
            return None
        size = str(found[1][0] or "n")
        column, row = f"({size}, 1)", f"({size},)"
        step = "In the step that TensorFlow traced," if graph.traced else "At the first step,"
        is_column = len(found[0]) == 2
        prediction, target = (column, row) if is_column else (row, column)
        own = "prediction.squeeze(-1)" if is_column else "target.squeeze(-1)"
        traced = "tf.squeeze(y_pred, -1)" if is_column else "tf.squeeze(y_true, -1)"
        return self.found(
            f"{step} the loss takes the difference between a prediction of shape {prediction} and a target of "
            f"shape {target}, where {size} is the batch size. The result is a matrix of shape ({size}, "
            f"{size}): every prediction is compared with every target. Predicting the mean for every "
            "example minimises this loss, so that is what the model will learn.",
            fix=traced if graph.traced else own,
            evidence={"prediction_shape": list(found[0]), "target_shape": list(found[1])},
        )

    @check
    def from_lookup(self, graph: LossGraph) -> Finding | None:
        """Report a lookup that pairs every row of the scores with the columns of all rows."""
        if (found := broadcast_operands.columns_of_all(graph)) is None:
            return None
        size, scores = found[1][0] or "n", f"({found[1][0] or 'n'}, {found[0][1] or 'm'})"
        return self.found(
            f"In the step that TensorFlow traced, tf.gather(..., axis=1) looks up {size} columns in scores of "
            f"shape {scores}, where {size} is the batch size. Without batch_dims=1, each row gets the columns of "
            f"all rows, not just its own: the result is a matrix of shape ({size}, {size}). The loss broadcasts "
            f"the targets of shape ({size},) to it, so every example is also trained on the columns and targets "
            "of the others.",
            fix=(
                "tf.gather(scores, columns, axis=1, batch_dims=1)  # one value per row",
                "tf.reduce_sum(scores * tf.one_hot(columns, scores.shape[1]), axis=1)",
            ),
            evidence={"prediction_shape": [found[1][0]] * 2, "target_shape": list(found[1])},
        )

    @check
    def from_product(self, graph: LossGraph) -> Finding | None:
        """Report the product of a column and a row if only its mean or sum is used."""
        if (found := broadcast_operands.product(graph)) is None:
            return None
        values, numbers = found
        size = values[0]
        squeezed = "log_prob" if len(values) == 2 else "advantage"
        return self.found(
            f"The loss multiplies a tensor of shape {values} that requires gradients by a tensor of shape "
            f"{numbers} that does not. The product is a matrix of shape ({size}, {size}), which the loss "
            "then averages or sums, so each value is multiplied by the mean over all examples. Factors "
            "that differ between examples, such as an advantage or a weight, are averaged out.",
            fix=(
                f"call {squeezed}.squeeze(-1) before multiplying, so that both tensors have shape ({size},)",
                "assert log_prob.shape == advantage.shape",
            ),
            evidence={"values_shape": list(values), "numbers_shape": list(numbers)},
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: ShapesDiffer) -> Finding | None:
        """Name the shapes that the loss could not broadcast."""
        prediction, target = symptom.prediction, symptom.target
        evidence = {
            "prediction_shape": list(prediction) if prediction is not None else None,
            "target_shape": list(target) if target is not None else None,
        }
        equal = prediction is not None and prediction == target
        if equal and len(prediction or ()) < 2:
            return None  # one score for each target: the shapes are right
        if equal or symptom.sparse:
            both = (
                f"and the target both have shape {target}"
                if equal
                else f"has shape {prediction} and the target has shape {target}"
            )
            axis = "last" if symptom.sparse or len(prediction or ()) == 2 else "second"
            return self.found(
                f"The prediction {both}, but this loss expects class indices: the target should have the "
                f"prediction's shape without the {axis} axis.",
                fix=_fix_sparse(prediction, target) if symptom.sparse else ONE_HOT,
                evidence=evidence,
                where=crash.where,
            )
        if symptom.rows is not None or symptom.asked is not None:
            seen, fix = _rows(*symptom.rows) if symptom.rows else _classes_axis(*(symptom.asked or ((), ())))
            return self.found(seen, fix=fix, evidence=evidence, where=crash.where)
        if symptom.wants_indices and prediction is None and target is not None and len(target) == 4:
            seen, fix = _mask_with_channels(target)
            return self.found(seen, fix=fix, evidence=evidence, where=crash.where)
        if symptom.wants_indices and (prediction is None or target is None):
            return self.found(
                "The loss expects class indices, one integer per prediction, but the target has one axis too "
                "many. The extra axis may come from one-hot rows, a last axis of size 1, or colour channels. "
                f"{not_known('the shape of the target', crash.live)}",
                fix=INDICES,
                evidence=evidence,
                where=crash.where,
            )
        if prediction is not None and target is not None and _is_one_hot(prediction, target):
            return self.found(
                f"The loss got {target[0]} labels for {prediction[0]} predictions of {prediction[1]} classes: "
                "the targets are one-hot, but this loss expects class indices.",
                fix=ONE_HOT,
                evidence=evidence,
                where=crash.where,
            )
        if prediction is not None and target is not None:
            seen = (
                f"The loss cannot compare a prediction of shape {prediction} with a target of shape "
                f"{target}{_clash(prediction, target)}."
            )
        else:
            seen = (
                "The loss cannot compare prediction and target, because their shapes do not match. "
                f"{not_known('the shapes', crash.live)}"
            )
        return self.found(
            f"{seen} A loss needs one target per prediction, in a matching shape. Shapes that happen to broadcast "
            "raise no error, but then the loss compares the wrong pairs.",
            fix=after_crash(prediction, target),
            evidence=evidence,
            where=crash.where,
        )


def _fix_sparse(prediction: Shape | None, target: Shape | None) -> Fix:
    """Return the fix for Keras' sparse loss: by the shapes, one target for each sequence or one-hot targets."""
    one_each = target is not None and (len(target) == 1 or target[1:] == (1,))
    return OF_SEQUENCES if one_each and len(prediction or ()) == 3 else SPARSE


def _rows(predictions: int, targets: int) -> tuple[str, Fix]:
    """Return what two row counts prove when the message contains nothing else."""
    seen = f"The loss got {predictions} predictions for {targets} targets, but needs one target per prediction."
    print_both = "print the shapes of prediction and target just before the loss"
    if targets == 0:
        return (
            f"{seen} There are no targets: the labels are missing from the batch, or truncation removed them all.",
            ("print the labels of the failing batch before and after the collator", print_both),
        )
    if predictions % targets == 0:
        each = predictions // targets
        return (
            f"{seen} That is {each} predictions per target. Either the output keeps an axis (positions, "
            "windows or pixels) that the targets lack, or a reshape (x.view(-1, n)) moves other axes into "
            "the batch axis.",
            (
                "use x = x.flatten(1), which keeps the batch axis, before the last layer; set in_features to "
                "match",
                "pool the extra axis: x.mean(dim=1)",
                "keep only the last position: x[:, -1]",
                print_both,
            ),
        )
    if targets % predictions == 0:
        each = targets // predictions
        return (
            f"{seen} That is {each} targets per prediction. There are three possible causes: {each} labelled "
            "positions share one prediction, one-hot rows were flattened, or the output was truncated.",
            (
                "if there is one label per position, use a model that predicts one value per position",
                f"target.view(-1, {each}).argmax(1), if the targets are one-hot",
                print_both,
            ),
        )
    return (
        f"{seen} Neither number is a multiple of the other. There are three possible causes: a reshape mixes "
        "the batch with other axes, the last batch is smaller than a hard-coded batch size, or labels and "
        "predictions are sequences of different lengths.",
        ("use x.view(x.size(0), -1) instead of a hard-coded batch size", print_both),
    )


def _mask_with_channels(target: Shape) -> tuple[str, Fix]:
    """Report the extra axis of a mask: the loss reads (batch, height, width)."""
    axis = 3 if (target[3] or 0) <= 4 < (target[1] or 0) else 1
    count = target[axis]
    seen = (
        f"The loss expects class indices, one integer per pixel, but the mask has shape {target}: it has an "
        f"extra axis (axis {axis}, of size {count})."
    )
    if count == 1:
        return seen, f"target = target.squeeze({axis})"
    one_hot = f"target = target.argmax(dim={axis}), if it has one channel per class"
    return seen, (
        one_hot,
        "if the values are colours, replace each colour with its class index when you load the masks",
    )


def _classes_axis(wanted: tuple[int, ...], got: tuple[int, ...]) -> tuple[str, Fix]:
    """Describe the target that a loss requires if the classes are on axis 1 of the prediction."""
    if len(got) < len(wanted):
        return (
            f"The loss takes the classes from axis 1 of the prediction, so it needs targets of shape {wanted}, "
            f"but got {got}. The prediction has one axis too many, such as the time steps of a sequence.",
            (
                "for outputs of shape (batch, steps, classes), use output[:, -1] or output.mean(1)",
                "output.squeeze(1), if print(output.shape) shows that axis 1 has size 1",
            ),
        )
    if len(got) > len(wanted):
        return (
            f"The loss takes the classes from axis 1 of the prediction, so it needs targets of shape {wanted}, "
            f"but got {got}. Either the prediction lost an axis through squeeze() or indexing, or the target has "
            "one axis too many.",
            (
                "print(output.shape, target.shape); the shapes must be (batch, classes, ...) and (batch, ...)",
                "use squeeze(1) rather than squeeze(), which also drops the batch axis when the batch size is 1",
                "target.argmax(1), if the target has a class axis",
                "target[:, 0], if the target has a channel axis",
            ),
        )
    return (
        f"The loss takes the classes from axis 1 of the prediction, so it needs targets of shape {wanted}, but "
        f"got {got}. The usual cause is that axis 1 holds the positions, and the last axis holds the classes.",
        (
            "loss_fn(output.flatten(0, -2), target.flatten()), for outputs of shape (batch, positions, classes)",
            "loss_fn(output.movedim(-1, 1), target), to keep the axes",
            "resize the target, if it is a mask of a different size than the output",
        ),
    )


def _shares_its_target(prediction: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether an example has several scalar predictions along axes that its single target lacks."""
    return (
        len(prediction) == len(target) + 1 > 2
        and prediction[-1] == 1
        and prediction[0] == target[0]
        and math.prod(target[1:]) == 1 < math.prod(prediction[1:])
    )


def _is_one_hot(prediction: Shape, target: Shape) -> bool:
    """Return whether the flattened target has a number for each class of each prediction."""
    if len(prediction) != 2 or len(target) != 1:
        return False
    rows, classes = prediction
    return rows is not None and classes is not None and classes > 1 and target[0] == rows * classes


def _table(prediction: tuple[int, ...], target: tuple[int, ...] | None) -> str:
    """Describe which values are compared after broadcasting."""
    import numpy as np

    if target is None:
        return " and compares unrelated values"
    try:
        full = np.broadcast_shapes(prediction, target)
    except ValueError:
        return " and compares unrelated values"
    targets_each = math.prod(full) // max(1, math.prod(prediction))
    predictions_each = math.prod(full) // max(1, math.prod(target))
    what = (
        f"every prediction is compared with {targets_each} targets"
        if targets_each > 1
        else f"every target is compared with {predictions_each} predictions"
    )
    return f" to {full}: {what} instead of only its own"


def _clash(prediction: Shape, target: Shape) -> str:
    """Name the axis whose sizes differ, if there is one."""
    if not prediction or not target:
        return ""
    if clashing_batches(prediction, target):
        return f": there are {prediction[0]} predictions for {target[0]} targets"
    if len(prediction) == len(target) and prediction[:-1] == target[:-1]:
        return (
            f": there are {count_of(prediction[-1] or 0, 'prediction')} and {count_of(target[-1] or 0, 'target')} "
            "per example"
        )
    return ""
