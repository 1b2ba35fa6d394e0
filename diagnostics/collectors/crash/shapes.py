"""Recognises shape errors of PyTorch, Keras, TensorFlow and NumPy, and finds the layer in the frames.

Asked last: a shape that is wrong for a reason that another recogniser knows is that one's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diagnostics.collectors.shared.arrays import is_tensor
from diagnostics.collectors.tracebacks.unknown_errors import tables
from diagnostics.facts.crash.shapes import (
    AxesMisfit,
    LayerMisfit,
    OperandsMisfit,
    ReshapeMisfit,
    Shape,
    WeightsMisfit,
)

from .frames import Crash, Recognisers
from .messages.table import Found, find_each, sizes, sizes_or_none

RECOGNISERS = Recognisers()

LAYERS = Path(__file__).with_name("layers.toml")
_MODULES = "torch/nn/modules/"
_WRAPPERS = ("_orig_mod",)  # what torch.compile puts between


@dataclass(frozen=True)
class _FailedLayer:
    """A layer of torch.nn that was running when it failed.

    Attributes:
        name: its class.
        path: where it is, as far as known.
        module: None if only the text is known.
        shape: of its input; None if not known.
        is_known: whether there is one.
    """

    name: str | None = None
    path: str | None = None
    module: Any = None
    shape: Shape | None = None
    is_known: bool = True


def _is_module(value: Any) -> bool:
    return hasattr(value, "_modules") and hasattr(value, "_parameters") and hasattr(value, "named_modules")


def _failed_layer(crash: Crash, *kinds: tuple[str, str]) -> _FailedLayer:
    """Return the innermost layer of one of the kinds, if no code of the user's ran within it.

    Args:
        crash: a failure of a model.
        kinds: a file of `torch.nn.modules` and a base class each, asked in order.
    """
    layers = (_of_kind(crash, file, base) for file, base in kinds)
    return next((layer for layer in layers if layer is not None), _FailedLayer(is_known=False))


def _of_kind(crash: Crash, file: str, base: str) -> _FailedLayer | None:
    frames, variables = crash.facts.frames, crash.variables
    for position in reversed(range(len(variables))):
        module = variables[position].get("self")
        if not _is_module(module):
            continue
        bases = {kind.__name__ for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn.")}
        if base not in bases:
            return None
        given = variables[position].get("input", variables[position].get("x"))
        shape = tuple(given.shape) if is_tensor(given) else None
        return _FailedLayer(type(module).__name__, _path(crash, position), module, shape)
    last = next((frame for frame in reversed(frames) if "functional.py" not in frame.file), None)
    if variables or last is None or not last.file.replace("\\", "/").endswith(f"{_MODULES}{file}"):
        return None
    return _FailedLayer(None, _path_in_code(crash, file))


def _path(crash: Crash, position: int) -> str | None:
    """Name a module by its path: the class of the outermost model with it, then `a.b[0]`; None of that model."""
    failed = crash.variables[position]["self"]
    for variables in crash.variables[: position + 1]:
        owner: Any = variables.get("self")
        parts = owner.named_modules() if _is_module(owner) else ()
        name = next((name for name, module in parts if module is failed), None)
        if name is not None:
            return type(owner).__name__ + _access(name) if name else None
    return None


def _access(name: str) -> str:
    """Write a name of `named_modules` as Python does: `net.0` becomes `.net[0]`."""
    parts = [part for part in name.split(".") if part and part not in _WRAPPERS]
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


def _path_in_code(crash: Crash, file: str) -> str | None:
    """Read from a text which layer the user's line called, if it called one, and that one failed."""
    frames = crash.facts.frames
    own = next((number for number, frame in reversed(list(enumerate(frames))) if frame.yours), None)
    within = ("module.py", file, "functional.py")
    if own is None or not all(frame.file.endswith(within) for frame in frames[own + 1 :]):
        return None
    calls = re.findall(r"\bself\.[\w.]{1,200}(?=\()", frames[own].code or "")
    return calls[0] if len(calls) == 1 else None


def _factors(found: Found) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of two matrices, or of a matrix and a vector; else the two sizes that differ."""
    one, other = (("rows", "one"), ("other", "columns"))
    first, second = (sizes(",".join(filter(None, map(found.get, parts)))) for parts in (one, other))
    return first, second


@RECOGNISERS.reading("torch-product", "torch-vector")
def _linear(crash: Crash, found: Found) -> LayerMisfit | None:
    matrix, (other, *columns) = _factors(found)
    # The weight comes second in a product with a batch, and first in a product with a vector.
    (rows, got), (wanted, outputs) = (matrix, (other, columns[0])) if columns else ((0, other), matrix[::-1])
    layer = _failed_layer(crash, ("linear.py", "Linear"))
    if not layer.is_known or (layer.module is not None and layer.module.in_features != wanted):
        return None
    shape = layer.shape if layer.shape and layer.shape[-1] == got else None
    return LayerMisfit(
        wanted,
        got,
        "Linear" if layer.module is None else layer.name,
        layer.path,
        "in_features",
        shape,
        None if shape is None else len(shape) - 1,
        rows=None if shape is not None else rows,
        rebuilt=f"nn.Linear({{}}, {outputs})",
    )


@RECOGNISERS.reading("torch-channels")
def _convolution(crash: Crash, found: Found) -> LayerMisfit | None:
    weight, shape = sizes(found["weight"]), sizes(found["shape"])
    wanted, got = int(found["wanted"]), int(found["got"])
    axes = len(weight) - 2
    transposed = found.get("transposed") == "1"
    name = f"Conv{'Transpose' if transposed else ''}{axes}d"
    outputs = weight[1] if transposed else weight[0]
    layer = _failed_layer(crash, ("conv.py", "_ConvNd"))
    if layer.shape is not None and layer.shape[-axes - 1 :][:1] == (got,):
        shape = tuple(size or 0 for size in layer.shape)
    return LayerMisfit(
        wanted,
        got,
        layer.name or name,
        layer.path,
        "in_channels" if layer.is_known else None,
        shape,
        len(shape) - axes - 1,
        rebuilt=f"nn.{name}({{}}, {outputs}, ...)" if layer.is_known else None,
    )


_BATCH_NORM = {"2": "BatchNorm1d", "4": "BatchNorm2d", "5": "BatchNorm3d"}  # by the axes of its input


@RECOGNISERS.reading("torch-axes")
def _axes(crash: Crash, found: Found) -> AxesMisfit | None:
    operation = found.get("operation")
    layer = _failed_layer(
        crash,
        ("conv.py", "_ConvNd"),
        ("batchnorm.py", "_NormBase"),
        ("instancenorm.py", "_NormBase"),
        ("rnn.py", "RNNBase"),
    )
    if not layer.is_known and operation is None and crash.facts.frames:
        return None
    shape = sizes(found["shape"]) if operation else layer.shape
    few, many = found["few"], found.get("many")
    name = layer.name
    if name is None and operation is not None:
        name = operation.replace("conv_transpose", "ConvTranspose").replace("conv", "Conv")
        name = f"Conv{int(few) - 2}d" if name == "input" else name
    elif name is None and found[0].startswith("expected"):  # quoted without a traceback: only this layer says so
        name = _BATCH_NORM.get(few)
    channels = getattr(layer.module, "in_channels", getattr(layer.module, "num_features", None))
    if channels is None and (written := found.get("channels")) is not None and "Transpose" not in (name or ""):
        channels = int(written) if written != "1" else None  # 1 is also the weight of a depthwise layer
    return AxesMisfit(
        few if many is None else f"{few} or {many}",
        len(shape) if shape is not None else int(found["got"]),
        name,
        layer.path,
        shape,
        channels,
    )


@RECOGNISERS.reading("torch-layers")
def _sized_layer(crash: Crash, found: Found) -> LayerMisfit | None:
    kind = tables(LAYERS)[found.kind]
    layer = _failed_layer(crash, (kind["file"], kind["base"]))
    name = layer.name or kind["name"]
    wanted, said, axis = sizes(found["wanted"]), found.sizes("got"), kind.get("axis")
    shape: Shape | None = found.sizes("shape") or layer.shape
    if axis is None:
        tail = (n for n in range(-1, -len(wanted) - 1, -1) if shape and wanted[n] != shape[n])
        axis = next(tail, None)
    if axis is None or not (said or shape):
        return None
    setting = kind.get("setting") if len(wanted) == 1 else None
    more = kind.get("more", "").format(getattr(layer.module, "hidden_size", "hidden_size"))
    is_class = "class" in kind or layer.module is not None
    return LayerMisfit(
        wanted[0 if "axis" in kind else axis],
        said[0] if said else int((shape or ())[axis] or 0),
        name,
        layer.path,
        setting,
        shape,
        None if shape is None else axis % len(shape),
        rebuilt=f"nn.{name}({{}}{more})" if is_class and setting else None,
    )


@RECOGNISERS.reading("torch-product", "torch-vector", "torch-inner", "keras-product")
def _matrix_product(crash: Crash, found: Found) -> OperandsMisfit | None:
    return _product(crash, found, *_factors(found))


def _product(crash: Crash, found: Found, first: Shape, second: Shape) -> OperandsMisfit | None:
    columns, rows = first[-1], second[-2:][0]
    if columns is None or rows is None or columns == rows:
        return None  # one of them may have been transposed: which sizes clash is not said
    tensors = _named(crash, lambda shapes: shapes[0][-1:] == (columns,) and shapes[1][-2:][:1] == (rows,))
    shapes = (first, second) if len(first) > 1 else ()
    return OperandsMisfit("matrix product", columns, rows, None, shapes, tensors, found.library)


_EXPANDED = re.compile(r"Target sizes: \[(?P<target>[\d, ]+)\]\.\s+Tensor sizes: \[(?P<tensor>[\d, ]+)\]")


@RECOGNISERS.reading("torch-element-wise")
def _element_wise(crash: Crash, found: Found) -> OperandsMisfit | None:
    if found.get("axis") is None:
        return None
    one, other, axis = int(found["one"]), int(found["other"]), int(found["axis"])

    def clash(shapes: list[Shape]) -> bool:
        from_end = max(map(len, shapes)) - axis
        return all(len(s) >= from_end and s[-from_end] == n for s, n in zip(shapes, (one, other), strict=True))

    tensors = _named(crash, clash) or _named(crash, lambda shapes: clash(shapes[::-1]))
    told = _EXPANDED.search(crash.facts.message)
    if found.kind == "expanded" and told is not None:
        return OperandsMisfit("expansion", one, other, axis, (sizes(told["target"]), sizes(told["tensor"])))
    steps = any("torch/optim/" in frame.file.replace("\\", "/") for frame in crash.facts.frames[-1:])
    return OperandsMisfit("optimizer step" if steps else "element-wise", one, other, axis, (), tensors)


_OPERATION = re.compile(r"\[Op:(?P<eager>\w+)\]|\}\} = (?P<node>\w+)\[|\(op: '(?P<old>\w+)'\)")
_ELEMENT_WISE = ("AddV2", "Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference", "Pow")


@RECOGNISERS.reading("keras-element-wise", "numpy-element-wise")
def _shapes_apart(crash: Crash, found: Found) -> OperandsMisfit | None:
    """Name the last axis along which two shapes differ, and neither is 1; None if they go together."""
    shapes = sizes_or_none(found["one"]), sizes_or_none(found["other"])
    named = _OPERATION.search(crash.facts.message)
    operation = "" if named is None else next(filter(None, named.groups()))
    if "MatMul" in operation:
        return _product(crash, found, *shapes)
    if operation not in ("", *_ELEMENT_WISE) and not operation.startswith("__"):  # that is the traced function
        return None
    for back in range(1, min(map(len, shapes)) + 1):
        one, other = shapes[0][-back], shapes[1][-back]
        if one is not None and other is not None and one != other and 1 not in (one, other):
            # What is merged comes without the batch's axis.
            axis = None if found.kind == "merged" else max(map(len, shapes)) - back
            return OperandsMisfit("element-wise", one, other, axis, shapes, library=found.library)
    return None


@RECOGNISERS.reading("torch-concatenation", "keras-concatenation")
def _concatenation(crash: Crash, found: Found) -> OperandsMisfit | None:
    if (axis := found.get("axis")) is not None:
        first, second = int(found["one"]), int(found["other"])
        tensors = _named(crash, lambda shapes: first in shapes[0] and second in shapes[1])
        return OperandsMisfit("concatenation", first, second, int(axis), (), tensors)
    listed = found.get("shapes") or f"({found['one']}), ({found['other']})"
    shapes = tuple(sizes_or_none(shape) for shape in re.findall(r"\(([^()]*)\)", listed))
    for one, other in zip(*shapes[:2], strict=True):
        if one is not None and other is not None and one != other:
            return OperandsMisfit("concatenation", one, other, None, shapes, library="keras")
    return None


def _named(crash: Crash, fits: Callable[[list[Shape]], bool]) -> dict[str, Shape]:
    """Return the two tensors that the failed line names, if their shapes clash."""
    tensors = {} if crash.expression is None else crash.expression.tensors()
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    return shapes if len(shapes) == 2 and fits(list(shapes.values())) else {}


@RECOGNISERS.reading("torch-reshape", "keras-reshape", "numpy-reshape")
def _reshape(crash: Crash, found: Found) -> ReshapeMisfit | None:
    wanted = sizes(found["wanted"].replace("newaxis", "-1"))
    name: str | None = None
    shape = None if found.get("shape") is None else sizes_or_none(found["shape"])
    size = int(found["size"]) if shape is None else math.prod(1 if part is None else part for part in shape)
    if found.library == "numpy" and len(wanted) == 1 and crash.facts.message[found.match.end() :].startswith(")"):
        wanted = (-1, *wanted)  # NumPy omits an open first axis: (6,) is one of six
    if found.library == "torch" and crash.expression is not None:
        held = ((name, tuple(value.shape)) for name, value in crash.expression.tensors().items())
        name, shape = next(((name, of) for name, of in held if math.prod(of) == size), (None, None))
    return ReshapeMisfit(wanted, size, name, shape, found.library)


@RECOGNISERS.asked
def _weights(crash: Crash) -> WeightsMisfit | None:
    message = crash.facts.message
    pretrained = "ignore_mismatched_sizes" in message
    for variables in crash.inward("log_state_dict_report") if pretrained else ():
        differing = sorted(variables["loading_info"].mismatched_keys)
        weights = {name: (tuple(saved), tuple(built)) for name, saved, built in differing}
        return WeightsMisfit(type(variables["model"]).__name__, weights, pretrained)
    # Transformers 5 prints a table before it fails.
    tables_of = find_each(crash.log, "weights-table") if pretrained else ()
    listed = (*find_each(message, "torch-weights"), *tables_of)
    weights = {found["name"]: (sizes(found["saved"]), sizes(found["built"])) for found in listed}
    named = re.search(r"Error\(s\) in loading state_dict for (\w+)", message)
    named = named or re.search(r"\b(\w{1,200}) LOAD REPORT", crash.log)
    return WeightsMisfit("model" if named is None else named[1], weights, pretrained) if weights else None


def _misfit(found: Found, wanted: int, shape: Shape, axis: int) -> LayerMisfit | None:
    layer, got = found.get("layer"), shape[axis]
    if got is None:
        return None
    # What has no name is the model itself.
    return LayerMisfit(wanted, got, None if layer else "model", layer, None, shape, axis, library="keras")


@RECOGNISERS.reading("keras-axes")
def _keras_axes(crash: Crash, found: Found) -> AxesMisfit | None:
    bound = {"min_": "at least ", "max_": "at most "}.get(found.get("bound") or "", "")
    shape = None if found.get("shape") is None else sizes_or_none(found["shape"])
    return _other_axes(found, f"{bound}{found['wanted']}", int(found.get("got") or len(shape or ())), shape)


def _other_axes(found: Found, wanted: str, got: int, shape: Shape | None) -> AxesMisfit:
    layer = found.get("layer")
    return AxesMisfit(wanted, got, None if layer else "model", layer, shape, library="keras")


@RECOGNISERS.reading("keras-axis", "keras-whole-shape")
def _keras_shape(crash: Crash, found: Found) -> LayerMisfit | AxesMisfit | None:
    """Read one size that a layer was built for, or a whole shape, as a model compares it with its input's."""
    wanted, shape = sizes_or_none(found["wanted"]), sizes_or_none(found["shape"])
    if not wanted or not shape:
        return None
    if (along := found.number("axis")) is not None:
        return _misfit(found, int(found["wanted"]), shape, along % len(shape))
    if len(wanted) == 2 and len(shape) > 2 and wanted[1] is not None and shape[-1] is not None:
        return _misfit(found, wanted[1], shape, len(shape) - 1)
    if len(wanted) != len(shape):
        misfit = _other_axes(found, str(len(wanted)), len(shape), shape)
        return replace(misfit, is_one_example=wanted[1:] == shape)
    for axis in reversed(range(len(wanted))):
        size, got = wanted[axis], shape[axis]
        if size is not None and got is not None and size != got:
            return _misfit(found, size, shape, axis)
    return None
