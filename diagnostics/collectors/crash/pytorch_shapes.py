"""Recognises shape errors of PyTorch, and finds the layer in the frames.

Asked last: a shape that is wrong for a reason that another recogniser knows is that one's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from diagnostics.facts.crash.shapes import (
    AxesMisfit,
    LayerMisfit,
    OperandsMisfit,
    ReshapeMisfit,
    Shape,
    WeightsMisfit,
    WindowMisfit,
)

from .failed_layer import failed_layer
from .frames import Crash, Recogniser
from .messages.table import Family, Found, sizes
from .pytorch import ELEMENT_WISE

_PRODUCT = Family("torch-product")
_VECTOR = Family("torch-vector")
_INNER = Family("torch-inner")
_WEIGHTS = Family("torch-weights")
_PRETRAINED_WEIGHTS = Family("transformers-weights")


def _product(message: str) -> tuple[int, int, int, int] | None:
    """Return rows and columns of two matrices that cannot be multiplied, the first's before the second's."""
    found = _PRODUCT.search(message)
    if found is None:
        return None
    rows, one, other, columns = (int(found[name]) for name in ("rows", "one", "other", "columns"))
    return rows, one, other, columns


def _linear(crash: Crash) -> LayerMisfit | None:
    message = crash.facts.message
    product, vector = _product(message), _VECTOR.search(message)
    if product is not None:
        rows, got, wanted, outputs = product
    elif vector is not None:
        rows, got, wanted, outputs = 0, int(vector["other"]), int(vector["one"]), int(vector["rows"])
    else:
        return None
    layer = failed_layer(crash, ("linear.py", "Linear"))
    if not layer.is_known or (layer.module is not None and layer.module.in_features != wanted):
        return None
    shape = layer.shape if layer.shape and layer.shape[-1] == got else None
    if vector is not None and shape is None:
        shape = (got,)
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


@Family("torch-channels").reader
def _convolution(crash: Crash, found: Found) -> LayerMisfit | None:
    weight, shape, wanted, got = (
        sizes(found["weight"]),
        sizes(found["shape"]),
        int(found["wanted"]),
        int(found["got"]),
    )
    axes = len(weight) - 2
    transposed = found.get("transposed") == "1"
    name = f"Conv{'Transpose' if transposed else ''}{axes}d"
    outputs = weight[1] if transposed else weight[0]
    layer = failed_layer(crash, ("conv.py", "_ConvNd"))
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


@Family("torch-axes").reader
def _axes(crash: Crash, found: Found) -> AxesMisfit | None:
    operation = found.get("operation")
    layer = failed_layer(
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
    elif name is None and found.text.startswith("expected"):  # quoted without a traceback: only this layer says so
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


@Family("torch-norm").reader
def _batch_norm(crash: Crash, found: Found) -> LayerMisfit | None:
    wanted = int(found["wanted"])
    if found.kind == "group":
        shape: Shape | None = sizes(found["shape"])
        got = int((shape or (0, 0))[1] or 0)
    else:
        got, shape = int(found["got"]), None
    layer = failed_layer(crash, ("batchnorm.py", "_NormBase"), ("normalization.py", "GroupNorm"))
    shape = layer.shape or shape
    batch_norm = layer.name is not None and "BatchNorm" in layer.name
    name = layer.name or ("GroupNorm" if found.kind == "group" else "BatchNorm")
    return LayerMisfit(
        wanted,
        got,
        name,
        layer.path,
        "num_features" if batch_norm else None,
        shape,
        None if shape is None else 1,
        rebuilt=f"nn.{name}({{}})" if batch_norm else None,
    )


@Family("torch-layer-norm").reader
def _layer_norm(crash: Crash, found: Found) -> LayerMisfit | None:
    wanted, shape = sizes(found["wanted"]), sizes(found["shape"])
    clash = next(
        ((n, w, s) for n, (w, s) in enumerate(zip(reversed(wanted), reversed(shape), strict=False), 1) if w != s),
        None,
    )
    if clash is None:
        return None
    layer = failed_layer(crash, ("normalization.py", "LayerNorm"))
    last, size, got = clash
    return LayerMisfit(
        size,
        got,
        "LayerNorm",
        layer.path,
        "normalized_shape" if len(wanted) == 1 else None,
        shape,
        len(shape) - last,
        rebuilt="nn.LayerNorm({})" if len(wanted) == 1 else None,
    )


@Family("torch-recurrent").reader
def _recurrent(crash: Crash, found: Found) -> LayerMisfit | None:
    layer = failed_layer(crash, ("rnn.py", "RNNBase" if found.kind == "layer" else "RNNCellBase"))
    return LayerMisfit(
        int(found["wanted"]),
        int(found["got"]),
        layer.name or "recurrent layer",
        layer.path,
        "input_size",
        layer.shape,
        None if layer.shape is None else len(layer.shape) - 1,
        rebuilt=None if layer.module is None else f"nn.{layer.name}({{}}, {layer.module.hidden_size}, ...)",
    )


@Family("torch-attention").reader
def _attention(crash: Crash, found: Found) -> LayerMisfit | None:
    layer = failed_layer(crash, ("activation.py", "MultiheadAttention"))
    return LayerMisfit(
        int(found["wanted"]),
        int(found["got"]),
        "MultiheadAttention",
        layer.path,
        "embed_dim",
        rebuilt="nn.MultiheadAttention({}, ...)",
    )


def _matrix_product(crash: Crash) -> OperandsMisfit | None:
    message = crash.facts.message
    if product := _product(message):
        rows, one, other, columns = product
        tensors = _named(crash, lambda shapes: shapes[0][-1:] == (one,) and shapes[1][-2:][:1] == (other,))
        return OperandsMisfit("matrix product", one, other, None, ((rows, one), (other, columns)), tensors)
    if found := _VECTOR.search(message):
        rows, one, other = int(found["rows"]), int(found["one"]), int(found["other"])
        return OperandsMisfit("matrix product", one, other, None, ((rows, one), (other,)))
    if found := _INNER.search(message):
        one, other = int(found["one"]), int(found["other"])
        tensors = _named(crash, lambda shapes: shapes[0][-1:] == (one,) and shapes[1][-2:][:1] == (other,))
        return OperandsMisfit("matrix product", one, other, None, (), tensors)
    return None


_EXPANDED = re.compile(r"Target sizes: \[(?P<target>[\d, ]+)\]\.\s+Tensor sizes: \[(?P<tensor>[\d, ]+)\]")


def _element_wise(crash: Crash) -> OperandsMisfit | None:
    found = ELEMENT_WISE.search(crash.facts.message)
    if found is None or found.get("axis") is None:
        return None
    one, other, axis = int(found["one"]), int(found["other"]), int(found["axis"])

    def clash(shapes: list[Shape]) -> bool:
        from_end = max(map(len, shapes)) - axis
        return all(len(s) >= from_end and s[-from_end] == n for s, n in zip(shapes, (one, other), strict=True))

    tensors = _named(crash, clash) or _named(crash, lambda shapes: clash(shapes[::-1]))
    told = _EXPANDED.search(crash.facts.message)
    if found.kind == "expanded" and told is not None:
        return OperandsMisfit("expansion", one, other, axis, (sizes(told["target"]), sizes(told["tensor"])))
    return OperandsMisfit("element-wise", one, other, axis, (), tensors)


@Family("torch-concatenation").reader
def _concatenation(crash: Crash, found: Found) -> OperandsMisfit | None:
    axis, one, other = int(found["axis"]), int(found["one"]), int(found["other"])
    tensors = _named(crash, lambda shapes: one in shapes[0] and other in shapes[1])
    return OperandsMisfit("concatenation", one, other, axis, (), tensors)


def _named(crash: Crash, fits: Callable[[list[Shape]], bool]) -> dict[str, Shape]:
    """Return the two tensors that the failed line names, if their shapes clash."""
    tensors = {} if crash.expression is None else crash.expression.tensors()
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    return shapes if len(shapes) == 2 and fits(list(shapes.values())) else {}


@Family("torch-reshape").reader
def _reshape(crash: Crash, found: Found) -> ReshapeMisfit | None:
    wanted, size = sizes(found["wanted"]), int(found["size"])
    tensors = {} if crash.expression is None else crash.expression.tensors()
    for name, value in tensors.items():
        if math.prod(value.shape) == size:
            return ReshapeMisfit(wanted, size, name, tuple(value.shape))
    return ReshapeMisfit(wanted, size)


def _weights(crash: Crash) -> WeightsMisfit | None:
    message = crash.facts.message
    differing = list(_WEIGHTS.each(message))
    if not differing:
        return None
    weights = {found["name"]: (sizes(found["saved"]), sizes(found["built"])) for found in differing}
    model = re.search(r"Error\(s\) in loading state_dict for (\w+)", message)
    named = "model" if model is None else model[1]
    return WeightsMisfit(named, weights, pretrained="ignore_mismatched_sizes" in message)


def _pretrained_weights(crash: Crash) -> WeightsMisfit | None:
    """Read the table that transformers 5 prints before it fails, from the frame that holds it."""
    if _PRETRAINED_WEIGHTS.search(crash.facts.message) is None:
        return None
    for variables in crash.inward("log_state_dict_report"):
        differing = sorted(variables["loading_info"].mismatched_keys)
        weights = {name: (tuple(saved), tuple(built)) for name, saved, built in differing}
        return WeightsMisfit(type(variables["model"]).__name__, weights, pretrained=True)
    size = r"torch\.Size\(\[([\d, ]*)\]\)"
    rows = re.findall(
        rf"(?<![\w.])([\w.]+) {{1,200}}\| MISMATCH +\|[^\n]{{0,400}} ckpt: {size} vs model: ?{size}", crash.log
    )
    model = re.search(r"\b(\w+) LOAD REPORT", crash.log)
    weights = {name: (sizes(saved), sizes(built)) for name, saved, built in rows}
    return WeightsMisfit("model" if model is None else model[1], weights, pretrained=True) if weights else None


@Family("torch-window").reader
def _window(crash: Crash, found: Found) -> WindowMisfit | None:
    window = found.get("window")
    return WindowMisfit(sizes(found["size"]), None if window is None else sizes(window))


RECOGNISERS: tuple[Recogniser, ...] = (
    _linear,
    _convolution,
    _axes,
    _batch_norm,
    _layer_norm,
    _recurrent,
    _attention,
    _window,
    _matrix_product,
    _element_wise,
    _concatenation,
    _reshape,
    _weights,
    _pretrained_weights,
)
