"""See `ShapeMismatch`."""

from __future__ import annotations

from collections.abc import Mapping

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.shapes import AxesMisfit, LayerMisfit, OperandsMisfit, ReshapeMisfit, Shape, WeightsMisfit
from diagnostics.rules.shared import shape_fixes

MAX_WEIGHTS_NAMED = 4  # a checkpoint of another model differs in hundreds; the evidence holds them all


class ShapeMismatch(Rule):
    """One operation was given tensors whose shapes do not fit.

    ## What it does
    Recognises the failure in PyTorch and Keras, and names the layer by its place in the model, the size it was
    built for, and the shape it got. Where the numbers say how the input came to be wrong (not flattened, channels
    last, turned over, no axis of channels), it says so.

    ## Why it is bad
    A layer holds weights for one size of input. The message of the operation that failed knows its two sizes, but
    seldom which layer of the model it was in, and which of the two sizes is the weights'. Between the layer that
    is named and the line where the shape went wrong can stand several others that took any shape.

    ## Example
    ```python
    self.features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2))    # (1, 28, 28) to (8, 13, 13)
    self.classifier = nn.Linear(1352, 10)

    def forward(self, x):
        return self.classifier(self.features(x))    # (32, 8, 13, 13) to a layer that wants (32, 1352)
    ```

    ## Instead
    ```python
    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))
    ```

    ## Thresholds
    None: it is found only once an operation has failed.

    ## Known problems
    What the user meant is not in the numbers: that flattened sizes agree, or that an axis has the size that was
    wanted, can be chance. A text holds no frames: of a Linear's input it tells only the table that PyTorch lays
    it out as, and not where in the model the layer is. Shapes that a loss cannot bring together are
    `broadcast-loss`, examples that do not stack `ragged-batch`.

    ## Sources
    PyTorch's documentation of `torch.nn` and of broadcasting semantics, Keras' of `keras.InputSpec`: the shapes
    that each layer and operation takes.
    """

    severity = "error"
    no_exhibit = "it fails at once and at the line at fault, and the error names both sizes"

    @check
    def from_layer(self, crash: CrashFacts, symptom: LayerMisfit) -> Finding | None:
        """Name the layer, what it was built for and what it got."""
        name = _name(symptom.layer, symptom.path)
        built = f"with {symptom.setting}={symptom.wanted}" if symptom.setting else f"for {symptom.wanted}"
        if symptom.shape is None:
            got = f"got {symptom.got}"
            got += f", in {symptom.rows} {'row' if symptom.rows == 1 else 'rows'}" if symptom.rows else ""
        else:
            along = f" along axis {symptom.axis}" if symptom.axis is not None else ""
            got = f"got an input of shape {symptom.shape}, with {symptom.got}{along}"
        seen, fix = shape_fixes.of_layer(symptom)
        return self.found(
            _sentences(f"{name} was built {built} and {got}.", seen),
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
        """Name the layer and how many axes it takes."""
        seen, fix = shape_fixes.of_axes(symptom)
        got = f"of shape {symptom.shape}, with {symptom.got}" if symptom.shape else f"with {symptom.got}"
        return self.found(
            _sentences(
                f"{_name(symptom.layer, symptom.path)} takes inputs with {symptom.wanted} axes and got one {got}.",
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
        """Name the sizes that clash and, where they are known, the tensors."""
        one, other, axis = symptom.one, symptom.other, symptom.axis
        if symptom.operation == "matrix product":
            clash = f"A matrix product was given {one} columns for {other} rows; the two must be equal"
        elif symptom.operation == "concatenation":
            joins = f" along axis {axis}" if axis is not None else ""
            clash = (
                f"Tensors were to be joined{joins}, and along another axis, where all must be equal, they have "
                f"sizes {one} and {other}"
            )
        else:
            along = f" along axis {axis}" if axis is not None else ""
            clash = (
                f"An element-wise operation was given sizes {one} and {other}{along}; it takes equal ones, or a 1"
            )
        shapes = _shapes(symptom.tensors) or " and ".join(str(shape) for shape in symptom.shapes)
        seen, fix = shape_fixes.of_operands(symptom)
        return self.found(
            _sentences(f"{clash}{f': {shapes}' if shapes else ''}.", seen),
            fix=fix,
            evidence={
                "operation": symptom.operation,
                "sizes": [one, other],
                "axis": axis,
                "shapes": [list(shape) for shape in symptom.shapes],
                "tensors": {name: list(shape) for name, shape in symptom.tensors.items()},
            },
            where=crash.where,
        )

    @check
    def from_reshape(self, crash: CrashFacts, symptom: ReshapeMisfit) -> Finding | None:
        """Name the shape that was wanted and how many values there are."""
        seen, fix = shape_fixes.of_reshape(symptom)
        has = f"has {symptom.size} values"
        if symptom.shape is not None:
            has = f"has shape {symptom.shape}, which is {symptom.size} values"
        return self.found(
            _sentences(
                f"A tensor was to take the shape {symptom.wanted}, and {symptom.tensor or 'it'} {has}: the one "
                "cannot hold the other.",
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
        """Name the weights that have another shape in the checkpoint."""
        told = [
            f"{name} is {saved} there and {built} here"
            for name, (saved, built) in list(symptom.weights.items())[:MAX_WEIGHTS_NAMED]
        ]
        count = len(symptom.weights)
        more = f"; and {count - MAX_WEIGHTS_NAMED} more" if count > MAX_WEIGHTS_NAMED else ""
        seen, fix = shape_fixes.of_weights(symptom)
        return self.found(
            _sentences(
                f"The checkpoint is of a {symptom.model} with other sizes than this one: {'; '.join(told)}{more}.",
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
    return f"The {layer}" if layer else "The layer"


def _shapes(tensors: Mapping[str, Shape]) -> str:
    return ", ".join(f"{name} has shape {shape}" for name, shape in tensors.items())


def _list(shape: Shape | None) -> list[int | None] | None:
    return None if shape is None else list(shape)


def _sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)
