"""See `ShapeMismatch`."""

from __future__ import annotations

import math

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.shapes import (
    AxesMisfit,
    LayerMisfit,
    OperandsMisfit,
    ReshapeMisfit,
    Shape,
    WeightsMisfit,
)
from diagnostics.rules.shared import shape_fixes
from diagnostics.text.join import count_of, listed

MAX_WEIGHTS_NAMED = 4  # in the message; the evidence holds them all
SMALLEST_SIDE = 16  # pixels; smaller sizes are rarely the side of an image


class ShapeMismatch(MessageRule):
    """An operation received tensors whose shapes do not match.

    ## What it does
    Recognises the error messages of PyTorch and Keras. Names the layer (by its path in the model), the size it was
    built for, and the shape of its input. If the sizes reveal what is wrong with the input (not flattened,
    channels last, transposed, no channel axis), the finding says so.

    ## Why it is bad
    The weights of a layer fit only one input size. The error message gives two sizes, but rarely names the layer
    or says which size belongs to the weights.

    ## Example
    ```python
    # (1, 28, 28) to (8, 13, 13)
    self.features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2))
    self.classifier = nn.Linear(1352, 10)

    def forward(self, x):
        # (32, 8, 13, 13) to a layer for (32, 1352)
        return self.classifier(self.features(x))
    ```

    ## Instead
    ```python
    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))
    ```

    ## Thresholds
    None: the rule fires only after an operation has failed.

    ## Known problems
    Two sizes may be equal by coincidence, so the suggested cause may be wrong. A pasted traceback contains no
    objects, so the finding cannot say where in the model the layer is. `broadcast-loss` reports shapes that a loss
    cannot compare, and `ragged-batch` reports examples that cannot be stacked.

    ## Sources
    PyTorch's documentation for `torch.nn` and on broadcasting semantics, and Keras' documentation for
    `keras.InputSpec`, on the shapes that each layer and operation accepts.
    """

    severity = "error"

    @check
    def from_layer(self, crash: CrashFacts, symptom: LayerMisfit) -> Finding | None:
        """Name the layer, the size it was built for, and the shape of its input."""
        name = _name(symptom.layer, symptom.path)
        built = (
            f"has {symptom.setting}={symptom.wanted}"
            if symptom.setting
            else f"expects {symptom.wanted} input channels"
            if (symptom.layer or "").startswith("Conv")
            else f"was built for inputs of size {symptom.wanted}"
        )
        if symptom.shape is None:
            rows = f"{count_of(symptom.rows, 'row')} of " if symptom.rows else ""
            got = f"has {rows}size {symptom.got}"
        else:
            along = f" along axis {symptom.axis}" if symptom.axis is not None else ""
            got = f"has shape {symptom.shape}, with size {symptom.got}{along}"
        seen, fix = shape_fixes.of_layer(symptom)
        return self.found(
            _sentences(f"{name} {built}, but its input {got}.", seen),
            fix=fix,
            evidence={
                "layer": symptom.layer,
                "path": symptom.path,
                "setting": symptom.setting,
                "wanted": symptom.wanted,
                "got": symptom.got,
                "input_shape": _list(symptom.shape),
            },
            where=crash.where,
        )

    @check
    def from_axes(self, crash: CrashFacts, symptom: AxesMisfit) -> Finding | None:
        """Name the layer and the number of axes that it takes."""
        seen, fix = shape_fixes.of_axes(symptom)
        got = f"has {symptom.got}: its shape is {symptom.shape}" if symptom.shape else f"has {symptom.got}"
        return self.found(
            _sentences(
                f"{_name(symptom.layer, symptom.path)} takes inputs with {symptom.wanted} axes, but its input "
                f"{got}.",
                seen,
            ),
            fix=fix,
            evidence={
                "layer": symptom.layer,
                "path": symptom.path,
                "wanted_axes": symptom.wanted,
                "got_axes": symptom.got,
                "input_shape": _list(symptom.shape),
            },
            where=crash.where,
        )

    @check
    def from_operands(self, crash: CrashFacts, symptom: OperandsMisfit) -> Finding | None:
        """Name the sizes that differ and, if known, the tensors."""
        seen, fix = shape_fixes.of_operands(symptom)
        return self.found(
            _sentences(_clash(symptom), seen),
            fix=fix,
            evidence={
                "operation": symptom.operation,
                "sizes": [symptom.one, symptom.other],
                "axis": symptom.axis,
                "shapes": [list(shape) for shape in symptom.shapes],
                "tensors": {name: list(shape) for name, shape in symptom.tensors.items()},
            },
            where=crash.where,
        )

    @check
    def from_reshape(self, crash: CrashFacts, symptom: ReshapeMisfit) -> Finding | None:
        """Name the requested shape and the number of values."""
        seen, fix = _indivisible(symptom) or shape_fixes.of_reshape(symptom)
        has = f"has {symptom.size} values"
        if symptom.shape is not None:
            has = f"has shape {symptom.shape}, with {symptom.size} values"
        return self.found(
            _sentences(
                f"{symptom.tensor or ('An array' if symptom.library == 'numpy' else 'A tensor')} cannot be "
                f"reshaped to {symptom.wanted}: it {has}.",
                seen,
            ),
            fix=fix,
            evidence={
                "wanted_shape": list(symptom.wanted),
                "values": symptom.size,
                "tensor": symptom.tensor,
                "shape": _list(symptom.shape),
            },
            where=crash.where,
        )

    @check
    def from_weights(self, crash: CrashFacts, symptom: WeightsMisfit) -> Finding | None:
        """Name the weights whose shape differs between checkpoint and model."""
        weights = [
            f"{name} is {saved} in the checkpoint and {built} in the model"
            for name, (saved, built) in list(symptom.weights.items())[:MAX_WEIGHTS_NAMED]
        ]
        count = len(symptom.weights)
        more = f"; and {count - MAX_WEIGHTS_NAMED} more" if count > MAX_WEIGHTS_NAMED else ""
        seen, fix = shape_fixes.of_weights(symptom)
        return self.found(
            _sentences(
                f"The checkpoint and this {symptom.model} have weights of different shapes: "
                f"{'; '.join(weights)}{more}.",
                seen,
            ),
            fix=fix,
            evidence={
                "model": symptom.model,
                "weights": {
                    name: {"checkpoint": list(saved), "model": list(built)}
                    for name, (saved, built) in symptom.weights.items()
                },
            },
            where=crash.where,
        )


def _name(layer: str | None, path: str | None) -> str:
    if path is not None:
        return f"{path} ({layer})" if layer else path
    return f"This {layer}" if layer else "The layer"


def _clash(symptom: OperandsMisfit) -> str:
    one, other = symptom.one, symptom.other
    along = f" along axis {symptom.axis}" if symptom.axis is not None else ""
    shapes = [f"{name} {shape}" for name, shape in symptom.tensors.items()]
    shapes = shapes or [str(shape) for shape in symptom.shapes]
    if symptom.operation == "matrix product":
        if not shapes:
            return f"Cannot multiply two matrices: the first has {one} columns, but the second has {other} rows."
        first, second = symptom.tensors if len(symptom.tensors) == 2 else ("the first", "the second")
        return (
            f"Cannot multiply matrices {'' if symptom.tensors else 'of shapes '}{listed(shapes)}: {first} has "
            f"{one} columns, but {second} has {other} rows."
        )
    if symptom.operation == "expansion":
        target, tensor = symptom.shapes
        return (
            f"A tensor of shape {tensor} cannot be written into one of shape {target}, or broadcast to that "
            f"shape: sizes {other} and {one}{along} differ, and only axes of size 1 are "
            f"broadcast.{_reading(symptom)}"
        )
    of = f" Shapes: {listed(shapes)}." if shapes else ""
    of += _reading(symptom)
    if symptom.operation == "concatenation":
        return (
            f"Tensors cannot be concatenated{along}: all other axes must match, but one has size "
            f"{one} in one tensor and {other} in another.{of}"
        )
    if symptom.operation == "optimizer step":
        return (
            f"The optimizer's state for a parameter has size {one}{along}, but the parameter's gradient has size "
            f"{other}."
        )
    return (
        f"An element-wise operation got sizes {one} and {other}{along}, but sizes must be equal unless one of "
        f"them is 1.{of}"
    )


def _reading(symptom: OperandsMisfit) -> str:
    """Return what the two sizes suggest, or an empty string."""
    one, other = symptom.one, symptom.other
    if one == 0 or other == 0:
        return (
            " One of the tensors is empty: an example may have no objects, or a filter may have removed "
            "everything."
        )
    if symptom.operation != "concatenation" and {one, other} in ({3, 4}, {1, 3}) and symptom.axis in (0, 1):
        kind = "4: RGBA, a PNG with transparency" if 4 in (one, other) else "1: grayscale"
        return f' If that axis holds image channels ({kind}; 3: RGB), read each image with image.convert("RGB").'
    many = max(one, other)
    if symptom.operation == "element-wise" and min(one, other) == 3 and many > SMALLEST_SIDE and symptom.axis == 1:
        return (
            " If that axis holds channels, the tensor with 3 is an image, or a mask that was read as an "
            "image. A mask "
            f'with one channel (image.convert("L")) can be broadcast over the {many} channels.'
        )
    spatial = symptom.axis in (2, 3) or (symptom.axis is None and symptom.operation == "concatenation")
    if spatial and abs(one - other) == 1 and min(one, other) > 1:
        return (
            " If these are feature maps, sizes differ by one when the network halves the height or width more "
            "often than it is divisible by 2."
        )
    of_feature_maps = abs(one - other) == 1 or max(one, other) == 2 * min(one, other)
    if symptom.operation == "concatenation" and min(one, other) > SMALLEST_SIDE and not of_feature_maps:
        return (
            " If these tensors are the examples of a batch, they differ in size: resize, crop or pad images and "
            "their masks to one size in the dataset."
        )
    return ""


def _indivisible(symptom: ReshapeMisfit) -> shape_fixes.Repair | None:
    """Report that the given sizes do not divide the number of values; None if no axis is -1."""
    fixed = abs(math.prod(symptom.wanted))
    of_numpy = symptom.library == "numpy" and symptom.shape is None
    if not of_numpy or symptom.wanted.count(-1) != 1 or fixed == 0 or symptom.size % fixed == 0:
        return None
    return (
        f"{symptom.size} is not a multiple of {fixed}, so no size fits the -1 axis.",
        (
            "print the shape where the tensor is created: it has a value, column or row too many or too few",
            "for a file of plain numbers (np.fromfile), check its columns, its dtype (float32 or float64) and "
            "whether it has a header; ls -l shows whether the file is complete",
            "use the sizes of the data instead of fixed sizes in the code",
        ),
    )


def _list(shape: Shape | None) -> list[int | None] | None:
    return None if shape is None else list(shape)


def _sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)
