"""Finds inputs whose values are too large for typical initial weights and learning rates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from diagnostics.engine.rule import Fix, NotApplicable
from diagnostics.facts.array import Array
from diagnostics.facts.loss_graph import LEAF, LossGraph, Shape
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts, OutputFacts
from diagnostics.text.join import capitalized

LARGE = 30.0  # root mean square; 1 after standardisation, 78 for the pixels of MNIST
MAX_FEATURES = 1000  # of a table, whose columns each have their own scale
SHARE_LEFT = 0.5  # of the excess over chance; with inputs at unit scale, less must be left if scale is the cause
NORMALISATIONS = {  # operations after which the scale of the inputs no longer matters
    "NativeBatchNorm",
    "CudnnBatchNorm",
    "MiopenBatchNorm",
    "NativeLayerNorm",
    "NativeGroupNorm",
}


@dataclass(frozen=True)
class InputScale:
    """The scale of an input, or of one of its columns.

    Attributes:
        name: the name of the input.
        column: the column index if the input is a table; None otherwise.
        size: root mean square, in the input's units.
        low: smallest value.
        high: largest value.
        pixels: whether the values are integers from 0 to 255.
    """

    name: str
    column: int | None
    size: float
    low: float
    high: float
    pixels: bool

    def message(self) -> str:
        """Return a clause that gives the range of the input or column."""
        name = called(self.name)
        what = name if self.column is None else f"column {self.column} of {name}"
        return f"{capitalized(what)} ranges from {self.low:,.6g} to {self.high:,.6g}"

    def fixes(self) -> dict[str, Fix]:
        """Return the code that scales it, by framework."""
        if self.pixels:
            return {"torch": "images / 255", "keras": "keras.layers.Rescaling(1 / 255)  # as the first layer"}
        return {
            "torch": "(x - mean) / std  # mean and std of each feature in the training set",
            "keras": "normalize = keras.layers.Normalization(); normalize.adapt(inputs)  # use as the first layer",
        }

    def evidence(self) -> dict[str, str | int | float | list[float] | None]:
        """Return the evidence for a finding, as JSON values."""
        return {
            "input": self.name,
            "column": self.column,
            "root_mean_square": round(self.size, 4),
            "range": [self.low, self.high],
        }


def largest_input(batch: BatchFacts, outputs: OutputFacts, model: ModelFacts | None) -> InputScale | None:
    """Return the input, or column of a table, with the largest values, if they are large.

    Integers count if they look like pixels and not like the bytes of a text: rows of bytes are looked up in an
    embedding, or have an output at each position.

    Raises:
        NotApplicable: no input holds floating-point numbers or pixels, or a layer of the model scales them.
    """
    if model is not None and model.scales_inputs:
        raise NotApplicable("needs a model without a layer that scales its inputs")
    found = []
    some = False
    for name, values in batch.inputs.items():
        if not values.size or "mask" in name or "bias" in name:
            continue
        looked_up = model is not None and model.embedding_rows is not None
        text = looked_up or (values.ndim == 2 and len(outputs.shape) > 2)
        image = values.dtype.kind in "iu" and not text and _like_pixels(values)
        if values.dtype.kind != "f" and not image and not (values.dtype == np.uint8 and values.ndim > 2):
            continue
        some = True
        if not np.isfinite(values).all():
            continue
        column = None
        looked_at = values
        if values.ndim == 2 and values.shape[1] <= MAX_FEATURES and not _like_pixels(values):
            column = int(np.square(values.astype(float)).mean(axis=0).argmax())
            looked_at = values[:, column]
        size = root_mean_square(looked_at)
        if size >= LARGE:
            low, high = float(looked_at.min()), float(looked_at.max())
            found.append(InputScale(name, column, size, low, high, _like_pixels(values)))
    if not some:
        raise NotApplicable("needs floating-point inputs or images")
    return max(found, key=lambda scale: scale.size, default=None)


def may_be_the_cause(loss: LossFacts, chance: float, outputs: OutputFacts, graph: LossGraph | None) -> bool:
    """Return whether the scale of the inputs may be what puts the loss so far above chance."""
    if loss.scaled is not None:
        return not loss.scaled - chance > SHARE_LEFT * (loss.value - chance)
    return graph is None or graph.traced or not _is_normalised(graph, outputs.shape)


def _is_normalised(graph: LossGraph, prediction: Shape) -> bool:
    """Return whether each path from the inputs to a prediction of this shape passes a normalisation."""
    first = next((index for index, node in enumerate(graph.nodes) if node.shape == prediction), None)
    if first is None:
        return False
    before = graph.below(first, through={node.operation for node in graph.nodes} - NORMALISATIONS)
    # What an operation reads may be an input unless it is a single number, or depends on a parameter.
    return not any(
        node.operation in ("Custom", "Unread") or any(one.value is None for one in node.constants)
        for node in (graph.nodes[index] for index in before)
        if node.operation not in NORMALISATIONS and node.operation != LEAF
    )


def _like_pixels(values: Array) -> bool:
    """Return whether these are integers from 0 to 255 that use most of that range, many per example."""
    many = values.ndim > 2 or (values.ndim == 2 and values.shape[1] >= 64)  # at least 8 by 8 pixels
    return many and bool(values.min() >= 0 and 128 <= values.max() <= 255 and (values == np.round(values)).all())


def root_mean_square(values: Array) -> float:
    """Return the root mean square of an array of any shape and numeric dtype, in its unit."""
    return math.sqrt(float(np.square(values.astype(float)).mean()))


def called(name: str) -> str:
    """Return the name of an input for a message; a positional input is named by its number."""
    return f"input {name}" if name.isdigit() else f"input {name!r}"
