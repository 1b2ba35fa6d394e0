"""Recognises shape errors of PyTorch, and finds the layer in the frames.

Asked last: a shape that is wrong for a reason that another recogniser knows is that one's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from diagnostics.collectors.shared.arrays import is_tensor
from diagnostics.facts.crash.shapes import (
    AxesMisfit,
    LayerMisfit,
    OperandsMisfit,
    ReshapeMisfit,
    Shape,
    WeightsMisfit,
)

from .frames import Crash, Recogniser
from .messages.table import Family, Found, sizes
from .pytorch import ELEMENT_WISE

_PRODUCT = Family("torch-product")
_VECTOR = Family("torch-vector")
_INNER = Family("torch-inner")
_WEIGHTS = Family("torch-weights")


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
    """Name a module by its path: the variable that holds the model, then `a.b[0]`."""
    chain: list[Any] = []
    first = 0
    for number, variables in enumerate(crash.variables[: position + 1]):
        module = variables.get("self")
        if _is_module(module) and not any(module is known for known in chain):
            first = first if chain else number
            chain.append(module)
    variable = _variable(crash, first, chain[0])
    if variable is None and len(chain) == 1:
        return None
    path = variable or type(chain[0]).__name__
    for parent, child in pairwise(chain):
        name = next((name for name, module in parent.named_modules() if module is child), None)
        path = type(child).__name__ if name is None else path + _access(name)
    return path


def _access(name: str) -> str:
    """Write a name of `named_modules` as Python does: `net.0` becomes `.net[0]`."""
    parts = [part for part in name.split(".") if part not in _WRAPPERS]
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


def _variable(crash: Crash, before: int, module: Any) -> str | None:
    """Return the user's own name for a model, from the innermost of the frames that called it."""
    frames = list(zip(crash.facts.frames, crash.variables, strict=False))[:before]
    for frame, variables in reversed(frames):
        if not frame.yours:
            continue
        for name, value in variables.items():
            if value is module:
                return str(name)
        for name, value in getattr(variables.get("self"), "__dict__", {}).items():
            if value is module:
                return f"self.{name}"
    return None


def _path_in_code(crash: Crash, file: str) -> str | None:
    """Read from a text which layer the user's line called, if it called one, and that one failed."""
    frames = crash.facts.frames
    own = next((number for number, frame in reversed(list(enumerate(frames))) if frame.yours), None)
    within = ("module.py", file, "functional.py")
    if own is None or not all(frame.file.endswith(within) for frame in frames[own + 1 :]):
        return None
    calls = re.findall(r"\bself\.[\w.]{1,200}(?=\()", frames[own].code or "")
    return calls[0] if len(calls) == 1 else None


def _factors(message: str) -> tuple[tuple[int, int], tuple[int, ...]] | None:
    """Return the shapes of two matrices, or of a matrix and a vector, that cannot be multiplied."""
    if found := _PRODUCT.search(message):
        return (int(found["rows"]), int(found["one"])), (int(found["other"]), int(found["columns"]))
    if found := _VECTOR.search(message):
        return (int(found["rows"]), int(found["one"])), (int(found["other"]),)
    return None


def _linear(crash: Crash) -> LayerMisfit | None:
    factors = _factors(crash.facts.message)
    if factors is None:
        return None
    matrix, (other, *columns) = factors
    # The weight comes second in a product with a batch, and first in a product with a vector.
    (rows, got), (wanted, outputs) = (matrix, (other, columns[0])) if columns else ((0, other), matrix[::-1])
    layer = _failed_layer(crash, ("linear.py", "Linear"))
    if not layer.is_known or (layer.module is not None and layer.module.in_features != wanted):
        return None
    shape = layer.shape if layer.shape and layer.shape[-1] == got else None
    if shape is None and not columns:
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


@Family("torch-axes").reader
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


@dataclass(frozen=True)
class _Kind:
    """Layers that refuse an input of another size in the same words.

    Attributes:
        file: of `torch.nn.modules`.
        base: class.
        setting: the argument that sets the expected size; empty if no argument does.
        more: arguments that follow it.
        axis: the input's axis of that size; None for the last axis that differs.
        name: of the layer, if only the text is known.
        is_one: whether that is a class, and not the name of several.
    """

    file: str
    base: str
    setting: str = ""
    more: str = ""
    axis: int | None = -1
    name: str = ""
    is_one: bool = False


_KINDS = {
    "statistics": _Kind("batchnorm.py", "_NormBase", "num_features", axis=1, name="BatchNorm"),
    "group": _Kind("normalization.py", "GroupNorm", axis=1, name="GroupNorm"),
    "layer norm": _Kind(
        "normalization.py", "LayerNorm", "normalized_shape", axis=None, name="LayerNorm", is_one=True
    ),
    "layer": _Kind("rnn.py", "RNNBase", "input_size", ", {}, ...", name="recurrent layer"),
    "cell": _Kind("rnn.py", "RNNCellBase", "input_size", ", {}, ...", name="recurrent layer"),
    "attention": _Kind(
        "activation.py", "MultiheadAttention", "embed_dim", ", ...", name="MultiheadAttention", is_one=True
    ),
}


@Family("torch-layers").reader
def _sized_layer(crash: Crash, found: Found) -> LayerMisfit | None:
    kind = _KINDS[found.kind]
    layer = _failed_layer(crash, (kind.file, kind.base))
    name = layer.name or kind.name
    wanted, said, axis = sizes(found["wanted"]), found.sizes("got"), kind.axis
    shape: Shape | None = found.sizes("shape") or layer.shape
    if axis is None:
        tail = (n for n in range(-1, -len(wanted) - 1, -1) if shape and wanted[n] != shape[n])
        axis = next(tail, None)
    if axis is None or not (said or shape):
        return None
    is_one_size = kind.setting != "" and len(wanted) == 1
    more = kind.more.format(getattr(layer.module, "hidden_size", "hidden_size"))
    is_class = kind.is_one or layer.module is not None
    return LayerMisfit(
        wanted[axis if kind.axis is None else 0],
        said[0] if said else int((shape or ())[axis] or 0),
        name,
        layer.path,
        kind.setting if is_one_size else None,
        shape,
        None if shape is None else axis % len(shape),
        rebuilt=f"nn.{name}({{}}{more})" if is_class and is_one_size else None,
    )


def _matrix_product(crash: Crash) -> OperandsMisfit | None:
    factors = _factors(crash.facts.message)
    if factors is not None:
        one, other = factors[0][1], factors[1][0]
    elif found := _INNER.search(crash.facts.message):
        one, other = int(found["one"]), int(found["other"])
    else:
        return None
    tensors = _named(crash, lambda shapes: shapes[0][-1:] == (one,) and shapes[1][-2:][:1] == (other,))
    return OperandsMisfit("matrix product", one, other, None, factors or (), tensors)


_EXPANDED = re.compile(r"Target sizes: \[(?P<target>[\d, ]+)\]\.\s+Tensor sizes: \[(?P<tensor>[\d, ]+)\]")


@ELEMENT_WISE.reader
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


@Family("transformers-weights").reader
def _pretrained_weights(crash: Crash, found: Found) -> WeightsMisfit | None:
    """Read the table that transformers 5 prints before it fails, from the frame that holds it."""
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


RECOGNISERS: tuple[Recogniser, ...] = (
    _linear,
    _convolution,
    _axes,
    _sized_layer,
    _matrix_product,
    _element_wise,
    _concatenation,
    _reshape,
    _weights,
    _pretrained_weights,
)
