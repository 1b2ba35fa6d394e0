"""Suggests code that makes the shapes of a prediction and its target match."""

from __future__ import annotations

import math

from diagnostics.engine.rule import Fix
from diagnostics.text.join import count_of

Shape = tuple[int | None, ...]  # None: a size that is not fixed, such as the batch size in a graph


def after_crash(prediction: Shape | None, target: Shape | None) -> dict[str, Fix]:
    """Return the fix by library for shapes that the loss could not broadcast; None is an unknown shape."""
    return {
        library: _fix_indices(prediction, target, library == "keras")
        or fix_shapes(prediction, target, library == "keras")
        for library in ("torch", "keras")
    }


def _fix_indices(prediction: Shape | None, target: Shape | None, in_keras: bool) -> Fix | None:
    """Return the fix for class indices with an extra axis or too few of them, and for Keras targets that lack one.

    `fit` calls the loss itself, so there its targets get the axis that they lack.
    """
    if not prediction or not target or len(prediction) < 2:
        return None
    if in_keras and prediction == (*target, 1):
        return "y = y[..., None], before fit", "in your own loss: keras.ops.squeeze(y_pred, -1)"
    if len(prediction) > len(target) + 1 and prediction[: len(target)] == target:
        pool = "keras.layers.GlobalAveragePooling1D()" if in_keras else "x.mean(dim=1)"
        return f"pool the axes between batch and outputs into one row per target: {pool}"
    if len(prediction) != len(target) or target[-1] != 1 or (prediction[-1] or 0) < 2:
        return None
    if any(one != other for one, other in zip(prediction[:-1], target[:-1], strict=True) if one and other):
        return None
    indices = (
        (
            f"keras.utils.to_categorical(y, {prediction[-1]}), if the targets are class indices",
            "keep the class indices and use keras.losses.SparseCategoricalCrossentropy",
        )
        if in_keras
        else ("loss_fn(prediction, target.squeeze(-1)), if the targets are class indices",)
    )
    return (
        *indices,
        "if the targets are continuous values, give the last layer one output",
    )


def clashing_batches(prediction: Shape, target: Shape) -> bool:
    """Return whether the two have different batch sizes."""
    return None not in (prediction[0], target[0]) and prediction[0] != target[0]


def _is_colour_mask(prediction: Shape, target: Shape) -> bool:
    """Return whether the target is an RGB or RGBA image, where one value per pixel is predicted."""
    rows = len(prediction) == len(target) == 4 and prediction[0] == target[0]
    return rows and prediction[1] == 1 and target[1] in (3, 4) and prediction[2:] == target[2:]


def fix_shapes(prediction: Shape | None, target: Shape | None, in_keras: bool) -> Fix:
    """Return the fix that makes the two shapes equal."""
    if not prediction or not target:
        return "print the shapes of prediction and target just before the loss, and make them equal"
    squeeze = "keras.ops.squeeze({}, -1)" if in_keras else "{}.squeeze(-1)"
    if prediction == (*target, 1):
        return f"loss_fn({squeeze.format('prediction')}, target)" if not in_keras else squeeze.format("y_pred")
    if target == (*prediction, 1):
        return f"loss_fn(prediction, {squeeze.format('target')})" if not in_keras else squeeze.format("y_true")
    if clashing_batches(prediction, target):
        return (
            "keep the batch axis first and unchanged in every reshape, view or flatten between input and loss: "
            "x.reshape(x.shape[0], -1)"
        )
    if prediction[:-1] == target:
        by_index = "SparseCategoricalCrossentropy" if in_keras else "torch.nn.CrossEntropyLoss"
        return (
            f"if the targets are class indices, use a loss that takes them ({by_index})",
            "if the targets are continuous values, give the last layer one output",
        )
    if prediction[:-1] == target[:-1]:
        fix = "if the target has the wrong shape, fix the code that creates it"
        return f"give the last layer {count_of(target[-1] or 0, 'output')}", fix
    if in_keras and len(target) == len(prediction) + 1 > 2 and target[-1] == prediction[-1] == target[-2]:
        return (
            "use to_categorical once: these targets were one-hot before",
            f"give the model targets with the output's shape, {prediction}",
        )
    if None in (*prediction[1:], *target[1:]):
        return (
            f"give the model targets with the output's shape, {prediction}",
            f"build the model so that its output has the shape of the targets, {target}",
        )
    if _is_colour_mask(prediction, target):
        return (
            'load the masks with one channel: Image.open(path).convert("L")',
            f"give the model {target[1]} outputs per pixel, if the {target[1]} channels are {target[1]} classes",
        )
    if math.prod(prediction[1:]) != math.prod(target[1:]):  # type: ignore[arg-type]
        returned, wanted = (
            f"an array of shape {shape[1:]}" if shape[1:] else "a single value" for shape in (target, prediction)
        )
        return (
            f"build the model so that it returns {returned} per example",
            f"give the model {wanted} per example as the target",
        )
    return f"reshape the prediction to the shape of the target, {target}"
