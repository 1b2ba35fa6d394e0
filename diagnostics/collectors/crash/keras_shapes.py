"""Recognises shape errors of Keras 3, TensorFlow and NumPy. Tried last, as `pytorch_shapes` is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from diagnostics.facts.crash.known import KnownFailure
from diagnostics.facts.crash.shapes import (
    AxesMisfit,
    LayerMisfit,
    OperandsMisfit,
    ReshapeMisfit,
    Shape,
)

from .frames import Crash, Recogniser
from .keras import ELEMENT_WISE, LOSS_SHAPES, WHOLE_SHAPE, calls, of_weights
from .messages import table
from .messages.table import Family, Found
from .messages.table import sizes_or_none as sizes


@Family("keras-axis").reader
def _axis(crash: Crash, found: Found) -> LayerMisfit | None:
    shape = sizes(found["shape"])
    axis = int(found["axis"]) % len(shape)
    got = shape[axis]
    return None if got is None else _misfit(crash, found["layer"], int(found["wanted"]), got, shape, axis)


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


@Family("keras-axes").reader
def _axes(crash: Crash, found: Found) -> AxesMisfit | None:
    bound = {"min_": "at least ", "max_": "at most "}.get(found.get("bound") or "", "")
    shape = sizes(found["shape"]) if found.get("shape") is not None else None
    return AxesMisfit(
        f"{bound}{found['wanted']}",
        int(found["got"]),
        _class(crash, found["layer"]),
        found["layer"],
        shape,
        library="keras",
    )


@Family("keras-checked").reader
def _checked_input(crash: Crash, found: Found) -> LayerMisfit | AxesMisfit | None:
    """Read the message of an old `fit` about an array that does not have the shape of the model's input."""
    shape = sizes(found["shape"])
    if (axes := found.get("axes")) is not None:
        return AxesMisfit(axes, len(shape), "model", None, shape, library="keras")
    return _compared(crash, None, sizes(found["wanted"]), shape)


@WHOLE_SHAPE.reader
def _whole_shape(crash: Crash, found: Found) -> LayerMisfit | AxesMisfit | None:
    """Read the message of a model, which compares its input's whole shape with what it was built for."""
    layer = found.get("layer")
    wanted, shape = sizes(found["wanted"]), sizes(found["shape"])
    if not wanted or not shape:
        return None
    if len(wanted) == 2 and len(shape) > 2 and wanted[1] is not None and shape[-1] is not None:
        return _misfit(crash, layer, wanted[1], shape[-1], shape, len(shape) - 1)
    return _compared(crash, layer, wanted, shape)


def _compared(crash: Crash, layer: str | None, wanted: Shape, shape: Shape) -> LayerMisfit | AxesMisfit | None:
    if len(wanted) != len(shape):
        return AxesMisfit(str(len(wanted)), len(shape), _class(crash, layer), layer, shape, library="keras")
    for axis in reversed(range(len(wanted))):
        size, got = wanted[axis], shape[axis]
        if size is not None and got is not None and size != got:
            return _misfit(crash, layer, size, got, shape, axis)
    return None


@Family("keras-product").reader
def _matrix_product(crash: Crash, found: Found) -> OperandsMisfit | None:
    one, other = sizes(found["one"]), sizes(found["other"])
    return _product(one, other)


def _product(one: Shape, other: Shape) -> OperandsMisfit | None:
    columns, rows = one[-1], other[-2]
    if columns is None or rows is None or columns == rows:
        return None  # one of them may have been transposed: which sizes clash is not said
    return OperandsMisfit("matrix product", columns, rows, None, (one, other), library="keras")


_ELEMENT_WISE = ("AddV2", "Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference", "Pow")


@ELEMENT_WISE.reader
def _element_wise(crash: Crash, found: Found) -> OperandsMisfit | None:
    message = crash.facts.message
    shapes = sizes(found["one"]), sizes(found["other"])
    named = re.search(r"\[Op:(\w+)\]", message) or re.search(r"\}\} = (\w+)\[|\(op: '(\w+)'\)", message)
    operation = None if named is None else next(filter(None, named.groups()))
    if operation is not None and operation.startswith("__"):  # the whole traced function
        operation = None
    if operation is not None and "MatMul" in operation:
        return _product(*shapes)
    if operation is not None and operation not in _ELEMENT_WISE:
        return None
    clash = _clash(*shapes, library="keras")
    # These come without the batch's axis.
    return replace(clash, axis=None) if clash is not None and found.kind == "merged" else clash


def _clash(*shapes: Shape, library: Literal["keras", "numpy"]) -> OperandsMisfit | None:
    """Return the last axis along which two shapes differ, and neither is 1; None if they go together."""
    for back in range(1, min(map(len, shapes)) + 1):
        one, other = shapes[0][-back], shapes[1][-back]
        if one is not None and other is not None and one != other and 1 not in (one, other):
            axis = max(map(len, shapes)) - back
            return OperandsMisfit("element-wise", one, other, axis, shapes, library=library)
    return None


@Family("keras-concatenation").reader
def _concatenation(crash: Crash, found: Found) -> OperandsMisfit | None:
    listed = found.get("shapes")
    if listed is not None:
        shapes = tuple(sizes(shape) for shape in re.findall(r"\(([^()]*)\)", listed))
    else:
        shapes = sizes(found["one"]), sizes(found["other"])
    for one, other in zip(*shapes[:2], strict=True):
        if one is not None and other is not None and one != other:
            return OperandsMisfit("concatenation", one, other, None, shapes, library="keras")
    return None


@Family("keras-reshape").reader
def _reshape(crash: Crash, found: Found) -> ReshapeMisfit | None:
    shape = sizes(found["shape"])
    size = math.prod(1 if part is None else part for part in shape)
    wanted = tuple(int(part) for part in found["wanted"].split(",") if part.strip())
    return ReshapeMisfit(wanted, size, shape=shape, library="keras")


_SAVED = Family("tf-weights")


def _weights(crash: Crash) -> KnownFailure | None:
    """Read the sizes that differ from a message of Keras or TensorFlow, which does not name the weight.

    Kernels of TensorFlow have the outputs last: a head for other classes differs there alone.
    """
    found = LOSS_SHAPES.search(crash.facts.message)
    if found is not None and found.kind == "loss or weights" and of_weights(crash, found):
        saved, built = found.sizes("prediction") or (), found.sizes("target") or ()
    elif (found := _SAVED.search(crash.facts.message)) is not None:
        saved, built = found.sizes("saved") or (), found.sizes("built") or ()
    else:
        return None
    head = " Only the last axis differs: a head for other classes." if saved[:-1] == built[:-1] else ""
    return KnownFailure(
        "shape-mismatch",
        f"A weight has the shape {saved} in the checkpoint and {built} in the model.{head}",
        (
            "model.load_weights(path, skip_mismatch=True) or include_top=False, and train the other layers again",
            "build the model with the sizes in the checkpoint, and replace the last layer after loading",
        ),
        " ".join(found.text.split()),
    )


@Family("numpy-reshape").reader
def _array_reshape(crash: Crash, found: Found) -> ReshapeMisfit:
    wanted = table.sizes(found["wanted"].replace("newaxis", "-1"))
    if len(wanted) == 1 and crash.facts.message[found.match.end() :].startswith(")"):
        wanted = (-1, *wanted)  # NumPy omits an open first axis: (6,) is one of six
    return ReshapeMisfit(wanted, int(found["size"]), library="numpy")


@Family("numpy-element-wise").reader
def _arrays(crash: Crash, found: Found) -> OperandsMisfit | None:
    return _clash(table.sizes(found["one"]), table.sizes(found["other"]), library="numpy")


RECOGNISERS: tuple[Recogniser, ...] = (
    _axis,
    _axes,
    _checked_input,
    _whole_shape,
    _matrix_product,
    _element_wise,
    _concatenation,
    _reshape,
    _weights,
    _array_reshape,
    _arrays,
)
