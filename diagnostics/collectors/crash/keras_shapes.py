"""Recognises shape errors of Keras 3 and TensorFlow. Tried last, as `pytorch_shapes` is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from diagnostics.facts.crash.shapes import (
    AxesMisfit,
    LayerMisfit,
    OperandsMisfit,
    ReshapeMisfit,
    RowsMisfit,
    Shape,
    ShapeSymptom,
)

from .frames import Crash
from .keras import calls, sizes

_OF_LAYER = (  # the second until TensorFlow 2.2
    r"(?:of layer ['\"]?(?P<layer>[\w/.-]+)['\"]? is incompatible with the layer"
    r"|is incompatible with layer (?P<old_layer>[\w/.-]+)): expected "
)
_CHECKED = re.compile(  # Keras until 2.3
    r"Error when checking input: expected \S+ to have (?:shape "
    r"\((?P<wanted>[^)]*)\)|(?P<axes>\d+) dimensions),? but got "
    r"array with shape \((?P<shape>[^)]*)\)"
)
_SHAPE = r"[\[(](?P<{}>[^\])]*)[\])]"


def _axis(crash: Crash) -> LayerMisfit | None:
    found = re.search(
        rf"{_OF_LAYER}axis (?P<axis>-?\d+) of input shape to have value (?P<wanted>\d+), but received input with "
        rf"shape {_SHAPE.format('shape')}",
        crash.facts.message,
    )
    if found is None:
        return None
    shape = sizes(found["shape"])
    axis = int(found["axis"]) % len(shape)
    got = shape[axis]
    layer = found["layer"] or found["old_layer"]
    return None if got is None else _misfit(crash, layer, int(found["wanted"]), got, shape, axis)


def _misfit(crash: Crash, layer: str | None, wanted: int, got: int, shape: Shape, axis: int) -> LayerMisfit:
    return LayerMisfit(wanted, got, _class(crash, layer), layer, None, shape, axis, library="keras")


def _class(crash: Crash, name: str | None) -> str | None:
    """Look the layer up by its name in the model that the frames hold; what has no name is the model itself."""
    if name is None:
        return "model"
    for call in calls(crash):
        flat: Callable[[], Any] = getattr(call.model, "_flatten_layers", list)
        for layer in flat():
            if layer.name == name:
                return type(layer).__name__
    return None


def _axes(crash: Crash) -> AxesMisfit | None:
    found = re.search(
        rf"{_OF_LAYER}(?P<bound>min_|max_)?ndim=(?P<wanted>\d+), found ndim=(?P<got>\d+)"
        rf"(?:\. Full shape received: {_SHAPE.format('shape')})?",
        crash.facts.message,
    )
    if found is None:
        return None
    bound = {"min_": "at least ", "max_": "at most "}.get(found["bound"] or "", "")
    shape = sizes(found["shape"]) if found["shape"] is not None else None
    return AxesMisfit(
        f"{bound}{found['wanted']}",
        int(found["got"]),
        _class(crash, found["layer"] or found["old_layer"]),
        found["layer"] or found["old_layer"],
        shape,
        library="keras",
    )


def _checked_input(crash: Crash) -> LayerMisfit | AxesMisfit | None:
    """Read the message of an old `fit` about an array that does not have the shape of the model's input."""
    found = _CHECKED.search(crash.facts.message)
    if found is None:
        return None
    shape = sizes(found["shape"])
    if found["axes"] is not None:
        return AxesMisfit(found["axes"], len(shape), "model", None, shape, library="keras")
    wanted = sizes(found["wanted"])
    if len(wanted) != len(shape):
        return AxesMisfit(str(len(wanted)), len(shape), "model", None, shape, library="keras")
    pairs = (
        (axis, w, s) for axis, (w, s) in enumerate(zip(wanted, shape, strict=True)) if w is not None and w != s
    )
    axis, size, got = next(pairs, (0, None, None))
    return None if size is None or got is None else _misfit(crash, None, size, got, shape, axis)


def _whole_shape(crash: Crash) -> LayerMisfit | AxesMisfit | None:
    """Read the message of a model, which compares its input's whole shape with what it was built for."""
    message = crash.facts.message
    found = re.search(
        rf"{_OF_LAYER}shape={_SHAPE.format('wanted')}, found shape={_SHAPE.format('shape')}", message
    ) or re.search(
        r"Invalid input shape for input .*"
        rf"Expected shape {_SHAPE.format('wanted')}, but input has incompatible shape {_SHAPE.format('shape')}",
        message,
        re.DOTALL,
    )
    if found is None:
        return None
    named = found.groupdict()
    layer = named.get("layer") or named.get("old_layer")
    wanted, shape = sizes(found["wanted"]), sizes(found["shape"])
    if not wanted or not shape:
        return None
    if len(wanted) == 2 and len(shape) > 2 and wanted[1] is not None and shape[-1] is not None:
        return _misfit(crash, layer, wanted[1], shape[-1], shape, len(shape) - 1)
    if len(wanted) != len(shape):
        return AxesMisfit(str(len(wanted)), len(shape), _class(crash, layer), layer, shape, library="keras")
    for axis in reversed(range(len(wanted))):
        size, got = wanted[axis], shape[axis]
        if size is not None and got is not None and size != got:
            return _misfit(crash, layer, size, got, shape, axis)
    return None


def _matrix_product(crash: Crash) -> OperandsMisfit | None:
    found = re.search(
        r"Matrix size-incompatible: In\[0\]: \[(?P<one>[\d,]+)\], In\[1\]: \[(?P<other>[\d,]+)\]",
        crash.facts.message,
    )
    if found is None:
        return None
    one, other = sizes(found["one"]), sizes(found["other"])
    return _product(one, other)


def _product(one: Shape, other: Shape) -> OperandsMisfit | None:
    columns, rows = one[-1], other[-2]
    if columns is None or rows is None or columns == rows:
        return None  # one of them may have been transposed: which sizes clash is not said
    return OperandsMisfit("matrix product", columns, rows, None, (one, other), library="keras")


_ELEMENT_WISE = ("AddV2", "Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference", "Pow")


def _element_wise(crash: Crash) -> OperandsMisfit | None:
    message = crash.facts.message
    if not re.match(r"Incompatible shapes|Dimensions must be equal|Inputs have incompatible shapes", message):
        return None
    found = re.search(
        rf"(?:Incompatible shapes: |with input shapes: |Received shapes ){_SHAPE.format('one')}"
        rf"(?: vs\. |, | and ){_SHAPE.format('other')}",
        message,
    )
    if found is None:
        return None
    shapes = sizes(found["one"]), sizes(found["other"])
    named = re.search(r"\[Op:(\w+)\]", message) or re.search(r"\}\} = (\w+)\[", message)
    if named is not None and "MatMul" in named[1]:
        return _product(*shapes)
    if named is not None and named[1] not in _ELEMENT_WISE:
        return None
    longest = max(map(len, shapes))
    for back in range(1, min(map(len, shapes)) + 1):
        one, other = shapes[0][-back], shapes[1][-back]
        if one is not None and other is not None and one != other and 1 not in (one, other):
            axis = None if message.startswith("Inputs") else longest - back  # these come without the batch's axis
            return OperandsMisfit("element-wise", one, other, axis, shapes, library="keras")
    return None


def _concatenation(crash: Crash) -> OperandsMisfit | None:
    message = crash.facts.message
    listed = re.search(
        r"requires inputs with matching shapes except for the concatenation axis\. Received: input_shape=\[(.*)\]",
        message,
    )
    if listed is not None:
        shapes = tuple(sizes(shape) for shape in re.findall(r"\(([^)]*)\)", listed[1]))
    elif found := re.search(
        rf"ConcatOp : Dimension \d+ in both shapes must be equal: shape\[0\] = {_SHAPE.format('one')} vs\. "
        rf"shape\[1\] = {_SHAPE.format('other')}",
        message,
    ):
        shapes = sizes(found["one"]), sizes(found["other"])
    else:
        return None
    for one, other in zip(*shapes[:2], strict=True):
        if one is not None and other is not None and one != other:
            return OperandsMisfit("concatenation", one, other, None, shapes, library="keras")
    return None


def _reshape(crash: Crash) -> ReshapeMisfit | None:
    found = re.search(
        rf"The total size of the tensor must be unchanged.*Received: input_shape={_SHAPE.format('shape')}, "
        r"\w+=\((?P<wanted>[-\d, ]+)\)",
        crash.facts.message,
        re.DOTALL,
    )
    if found is None:
        return None
    shape = sizes(found["shape"])
    size = math.prod(1 if part is None else part for part in shape)
    wanted = tuple(int(part) for part in found["wanted"].split(",") if part.strip())
    return ReshapeMisfit(wanted, size, shape=shape, library="keras")


def _rows(crash: Crash) -> RowsMisfit | None:
    message = crash.facts.message
    if "Data cardinality is ambiguous" not in message:
        return None
    rows = {name: int(size) for name, size in re.findall(r"(\w+) sizes: (\d+)", message)}
    return RowsMisfit(rows) if len(set(rows.values())) > 1 else None


RECOGNISERS: tuple[Callable[[Crash], ShapeSymptom | None], ...] = (
    _axis,
    _axes,
    _checked_input,
    _whole_shape,
    _matrix_product,
    _element_wise,
    _concatenation,
    _reshape,
    _rows,
)
