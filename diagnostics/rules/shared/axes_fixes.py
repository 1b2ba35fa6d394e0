"""Derives the fix for an input with too few or too many axes from its shape and the layer's channels."""

from __future__ import annotations

import math
import re

from diagnostics.facts.crash.shapes import AxesMisfit

from .shape_fixes import Repair

RECURRENT = ("lstm", "gru", "rnn")


def of_axes(symptom: AxesMisfit) -> Repair:
    """Add the missing axis, if it is known which one."""
    numbers = [int(number) for number in re.findall(r"\d+", symptom.wanted)]
    of_library = _of_keras if symptom.library == "keras" else _of_torch
    return of_library(symptom, numbers[0], numbers[-1])


def _of_keras(symptom: AxesMisfit, fewest: int, most: int) -> Repair:
    shape = symptom.shape
    if symptom.got == 2 < fewest and shape is not None and shape[-1] == 1:
        return "If each row of the input is itself an array, the input's dtype is object.", (
            "print(x.dtype); if the dtype is object: x = np.stack(x.ravel()), with examples of equal shape",
            "x = x[..., None] before this layer, if each example is one number",
        )
    if symptom.got == 2 and fewest == 3 and any(kind in (symptom.layer or "").lower() for kind in RECURRENT):
        return "This layer expects a sequence but got one vector per example.", (
            "set return_sequences=True in the preceding recurrent layer, if there is one: otherwise that layer "
            "returns only its last state",
            "x = x[..., None] before this layer, if each value is one time step",
        )
    if symptom.got == fewest - 1:
        return "", "x = x[..., None] before this layer, which adds an axis of size 1 at the end"
    reshape = f"keras.layers.Reshape(...) before this layer, to {symptom.wanted} axes including the batch axis"
    ones = [axis for axis, size in enumerate(shape or ()) if axis and size == 1]
    if symptom.got == most + 1 and ones:
        axis = -1 if ones[-1] == symptom.got - 1 else ones[-1]
        return f"Axis {ones[-1]} of the input has size 1.", (
            f"x.squeeze({axis}), or remove the np.newaxis or expand_dims that adds this axis",
            "keras.Input(shape=x.shape[1:]), if input_shape included the number of rows",
        )
    if symptom.got == 3 and most == 2:
        return "", (
            "x.reshape(len(x), -1), if the first layer is Dense",
            "pass ids of shape (n, length), if the first layer is an Embedding, which looks up the vectors; or "
            "use keras.Input(shape=x.shape[1:]) without the Embedding, if the inputs are already vectors",
        )
    if symptom.got > most:
        return "", ("keras.Input(shape=x.shape[1:]), if input_shape included the number of rows", reshape)
    return "", reshape


def _of_torch(symptom: AxesMisfit, fewest: int, most: int) -> Repair:
    shape, channels, name = symptom.shape, symptom.channels, symptom.layer or ""
    if symptom.got > most:
        extra = symptom.got - most
        count = {1: "two", 2: "three"}.get(extra, str(extra + 1))
        return "", f"x.flatten(0, {extra}) before this layer, if the first {count} axes together are the batch"
    if name.startswith("Conv") and symptom.got == fewest - 1 and shape is not None and (channels or 0) > 1:
        if shape[0] == channels:
            return "", "x.unsqueeze(0) before this layer, which adds the batch axis"
        if shape[-1] == channels:
            move = "x.T" if len(shape) == 2 else "x.movedim(-1, 0)"
            return f"The input's last axis has size {channels}: the channels are last.", (
                f"{move}.unsqueeze(0) before this layer, if x is one example without a batch axis",
            )
    if name.startswith("Conv") and shape is not None and len(shape) == 2 and channels and shape[1]:
        side = math.isqrt(shape[1] // channels)
        if fewest == 3 and side > 1 and side * side * channels == shape[1]:
            return (
                f"{shape[1]} = {channels} x {side} x {side}.",
                f"x.view(-1, {channels}, {side}, {side}) before this layer, if each row is an image",
            )
        if fewest == 2 and channels == 1:
            return "", "x.unsqueeze(1) before this layer"
    if channels == 1 and symptom.got == most - 1:
        return "", "x.unsqueeze(1) before this layer, which adds the channel axis"
    if name.startswith("Conv") and symptom.got == fewest - 1 and (channels is None or symptom.path is None):
        return "", (
            "x.unsqueeze(0) before this layer, if x is one example without a batch axis",
            "x.unsqueeze(1) before this layer, if x is a batch without a channel axis",
        )
    return "", f"reshape the input to {symptom.wanted} axes: x.unsqueeze(...) adds an axis, x.view(...) splits one"
