"""Recognises shape errors of PyTorch, and finds the layer in the frames.

Asked last: a shape that is wrong for a reason that another recogniser knows is that one's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from diagnostics.collectors.shared.arrays import is_tensor
from diagnostics.facts.crash.shapes import (
    AxesMisfit,
    LayerMisfit,
    OperandsMisfit,
    ReshapeMisfit,
    Shape,
    ShapeSymptom,
    WeightsMisfit,
    WindowMisfit,
)

from .failed_layer import failed_layer
from .frames import Crash

_MAX_LISTED = 8  # tensors of one list


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"-?\d+", text))


_META = re.compile(r"a and b must have same reduction dim, but got \[(\d+), (\d+)\] X \[(\d+), (\d+)\]")
_PRODUCT = re.compile(r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)")
_OLD_PRODUCT = re.compile(r"size mismatch, m1: \[(\d+) x (\d+)\], m2: \[(\d+) x (\d+)\]")  # until 1.7
_VECTOR = re.compile(r"size mismatch, got input \(\d+\), mat \((\d+)x(\d+)\), vec \((\d+)\)")
_BATCHES = re.compile(
    r"Expected size for first two dimensions of batch2 tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]"
)
_DOT = re.compile(r"inconsistent tensor size, expected tensor \[(\d+)\] and src \[(\d+)\]")


def _table(message: str) -> re.Match[str] | None:
    """Match the sizes of two matrices that cannot be multiplied: rows and columns of each."""
    return _PRODUCT.search(message) or _META.search(message) or _OLD_PRODUCT.search(message)


def _linear(crash: Crash) -> LayerMisfit | None:
    message = crash.facts.message
    table, vector = _table(message), _VECTOR.search(message)
    if table is not None:
        rows, got, wanted, outputs = map(int, table.groups())
    elif vector is not None:
        outputs, wanted, got = map(int, vector.groups())
        rows = 0
    else:
        return None
    layer = failed_layer(crash, "linear.py", "Linear")
    if layer is None or (layer.module is not None and layer.module.in_features != wanted):
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


def _convolution(crash: Crash) -> LayerMisfit | None:
    found = re.search(
        r"Given (?:groups=(?P<groups>\d+)|transposed=(?P<transposed>\d)), weight of size \[(?P<weight>[\d, ]+)\], "
        r"expected input\[(?P<shape>[\d, ]+)\] to have (?P<wanted>\d+) channels, but got (?P<got>\d+) channels",
        crash.facts.message,
    )
    if found is None:
        return None
    weight, shape, wanted, got = (
        _sizes(found["weight"]),
        _sizes(found["shape"]),
        int(found["wanted"]),
        int(found["got"]),
    )
    axes = len(weight) - 2
    name = f"Conv{'Transpose' if found['transposed'] == '1' else ''}{axes}d"
    outputs = weight[1] if found["transposed"] == "1" else weight[0]
    layer = failed_layer(crash, "conv.py", "_ConvNd")
    if layer is not None and layer.shape is not None and layer.shape[-axes - 1 :][:1] == (got,):
        shape = tuple(size or 0 for size in layer.shape)
    return LayerMisfit(
        wanted,
        got,
        layer.name if layer is not None and layer.name is not None else name,
        None if layer is None else layer.path,
        None if layer is None else "in_channels",
        shape,
        len(shape) - axes - 1,
        rebuilt=None if layer is None else f"nn.{name}({{}}, {outputs}, ...)",
    )


_AXES = (
    re.compile(
        r"Expected (?P<few>\d)D \(unbatched\) or (?P<many>\d)D \(batched\) input to (?P<operation>conv\w+), "
        r"but got input of size: \[(?P<shape>[\d, ]*)\]"
    ),
    re.compile(  # until 1.10
        r"Expected (?P<few>\d)-dimensional input for \d-dimensional weight \[[\d, ]+\], but got \d-dimensional "
        r"(?P<operation>input) of size \[(?P<shape>[\d, ]*)\] instead"
    ),
    re.compile(r"^expected (?P<few>\d)D(?: or (?P<many>\d)D)? input \(got (?P<got>\d)D input\)"),
    re.compile(r"(?:RNN|LSTM|GRU): Expected input to be (?P<few>2)D or (?P<many>3)D, got (?P<got>\d)D"),
)


def _axes(crash: Crash) -> AxesMisfit | None:
    found = next((found for pattern in _AXES if (found := pattern.search(crash.facts.message))), None)
    if found is None:
        return None
    named = found.groupdict()
    operation = named.get("operation")
    layer = (
        failed_layer(crash, "conv.py", "_ConvNd")
        or failed_layer(crash, "batchnorm.py", "_NormBase")
        or failed_layer(crash, "instancenorm.py", "_NormBase")
        or failed_layer(crash, "rnn.py", "RNNBase")
    )
    if layer is None and operation is None:
        return None
    shape = _sizes(named["shape"]) if operation else layer.shape if layer is not None else None
    module = None if layer is None else layer.module
    few, many = named["few"], named.get("many")
    name = layer.name if layer is not None else None
    if name is None and operation is not None:
        name = operation.replace("conv_transpose", "ConvTranspose").replace("conv", "Conv")
        name = f"Conv{int(few) - 2}d" if name == "input" else name
    return AxesMisfit(
        few if many is None else f"{few} or {many}",
        len(shape) if shape is not None else int(named["got"]),
        name,
        None if layer is None else layer.path,
        shape,
        getattr(module, "in_channels", getattr(module, "num_features", None)),
    )


def _batch_norm(crash: Crash) -> LayerMisfit | None:
    found = re.search(
        r"(?:running_mean|weight|bias) should contain (\d+) elements not (\d+)", crash.facts.message
    ) or re.search(
        r"Expected weight to be a vector of size equal to the number of channels in input, but got "
        r"weight of shape \[(?P<wanted>\d+)\] and input of shape \[(?P<shape>[\d, ]+)\]",
        crash.facts.message,
    )
    if found is None:
        return None
    if "wanted" in found.groupdict():  # of GroupNorm and its like
        shape: Shape | None = _sizes(found["shape"])
        wanted, got = int(found["wanted"]), int((shape or (0, 0))[1] or 0)
    else:
        got, wanted, shape = int(found[1]), int(found[2]), None
    layer = failed_layer(crash, "batchnorm.py", "_NormBase") or failed_layer(
        crash, "normalization.py", "GroupNorm"
    )
    if layer is not None and layer.shape is not None:
        shape = layer.shape
    name = layer.name if layer is not None else None
    batch_norm = name is not None and "BatchNorm" in name
    name = name or ("GroupNorm" if "wanted" in found.groupdict() else "BatchNorm")
    return LayerMisfit(
        wanted,
        got,
        name,
        None if layer is None else layer.path,
        "num_features" if batch_norm else None,
        shape,
        None if shape is None else 1,
        rebuilt=f"nn.{name}({{}})" if batch_norm else None,
    )


def _layer_norm(crash: Crash) -> LayerMisfit | None:
    found = re.search(
        r"Given normalized_shape=\[([\d, ]+)\], expected input with shape \[\*?[\d, ]*\], but got input of "
        r"size ?\[([\d, ]*)\]",
        crash.facts.message,
    )
    if found is None:
        return None
    wanted, shape = _sizes(found[1]), _sizes(found[2])
    clash = next(
        ((n, w, s) for n, (w, s) in enumerate(zip(reversed(wanted), reversed(shape), strict=False), 1) if w != s),
        None,
    )
    if clash is None:
        return None
    layer = failed_layer(crash, "normalization.py", "LayerNorm")
    last, size, got = clash
    return LayerMisfit(
        size,
        got,
        "LayerNorm",
        None if layer is None else layer.path,
        "normalized_shape" if len(wanted) == 1 else None,
        shape,
        len(shape) - last,
        rebuilt="nn.LayerNorm({})" if len(wanted) == 1 else None,
    )


def _recurrent(crash: Crash) -> LayerMisfit | None:
    message = crash.facts.message
    found = re.search(r"input\.size\(-1\) must be equal to input_size\. Expected (\d+), got (\d+)", message)
    cell = re.search(r"input has inconsistent input_size: got (\d+),? expected (\d+)", message)
    if found is not None:
        wanted, got = int(found[1]), int(found[2])
    elif cell is not None:
        got, wanted = int(cell[1]), int(cell[2])
    else:
        return None
    layer = failed_layer(crash, "rnn.py", "RNNBase" if cell is None else "RNNCellBase")
    module = None if layer is None else layer.module
    shape = None if layer is None else layer.shape
    name = None if layer is None else layer.name
    return LayerMisfit(
        wanted,
        got,
        name or "recurrent layer",
        None if layer is None else layer.path,
        "input_size",
        shape,
        None if shape is None else len(shape) - 1,
        rebuilt=None if module is None else f"nn.{name}({{}}, {module.hidden_size}, ...)",
    )


def _attention(crash: Crash) -> LayerMisfit | None:
    found = re.search(r"was expecting embedding dimension of (\d+), but got (\d+)", crash.facts.message)
    if found is None:
        return None
    layer = failed_layer(crash, "activation.py", "MultiheadAttention")
    return LayerMisfit(
        int(found[1]),
        int(found[2]),
        "MultiheadAttention",
        None if layer is None else layer.path,
        "embed_dim",
        rebuilt="nn.MultiheadAttention({}, ...)",
    )


def _matrix_product(crash: Crash) -> OperandsMisfit | None:
    message = crash.facts.message
    if found := _table(message):
        rows, one, other, columns = map(int, found.groups())
        tensors = _named(crash, lambda shapes: shapes[0][-1:] == (one,) and shapes[1][-2:][:1] == (other,))
        return OperandsMisfit("matrix product", one, other, None, ((rows, one), (other, columns)), tensors)
    if found := _VECTOR.search(message):
        rows, one, other = map(int, found.groups())
        return OperandsMisfit("matrix product", one, other, None, ((rows, one), (other,)))
    if found := _BATCHES.search(message) or _DOT.search(message):
        one, other = int(found[1]), int(found[2])
        tensors = _named(crash, lambda shapes: shapes[0][-1:] == (one,) and shapes[1][-2:][:1] == (other,))
        return OperandsMisfit("matrix product", one, other, None, (), tensors)
    return None


def _element_wise(crash: Crash) -> OperandsMisfit | None:
    message = crash.facts.message
    found = re.search(
        r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton "
        r"dimension (\d+)",
        message,
    ) or re.search(
        r"The expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at non-singleton "
        r"dimension (\d+)",
        message,
    )
    if found is None:
        return None
    one, other, axis = map(int, found.groups())

    def clash(shapes: list[Shape]) -> bool:
        from_end = max(map(len, shapes)) - axis
        return all(len(s) >= from_end and s[-from_end] == n for s, n in zip(shapes, (one, other), strict=True))

    tensors = _named(crash, clash) or _named(crash, lambda shapes: clash(shapes[::-1]))
    return OperandsMisfit("element-wise", one, other, axis, (), tensors)


def _concatenation(crash: Crash) -> OperandsMisfit | None:
    found = re.search(
        r"Sizes of tensors must match except in dimension (\d+)\. "
        r"(?:Expected size (\d+) but got size (\d+)|Got (\d+) and (\d+) in dimension \d+)",  # the second until 1.7
        crash.facts.message,
    )
    if found is None:
        return None
    axis, one, other = (int(size) for size in found.groups() if size is not None)
    tensors = _named(crash, lambda shapes: one in shapes[0] and other in shapes[1])
    return OperandsMisfit("concatenation", one, other, axis, (), tensors)


_DOTTED = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?![\w(])")


def _named(crash: Crash, fits: Callable[[list[Shape]], bool]) -> dict[str, Shape]:
    """Return the two tensors that the failed line names, if their shapes clash."""
    if not crash.variables:
        return {}
    variables, code = crash.variables[-1], crash.facts.frames[-1].code or ""
    tensors: dict[str, Shape] = {}
    for name in dict.fromkeys(_DOTTED.findall(code)):
        value = _resolved(name, variables)
        parts = value[:_MAX_LISTED] if isinstance(value, list | tuple) else ()
        for label, part in ((name, value), *((f"{name}[{n}]", part) for n, part in enumerate(parts))):
            if is_tensor(part):
                tensors[label] = tuple(part.shape)
    return tensors if len(tensors) == 2 and fits(list(tensors.values())) else {}


def _resolved(name: str, variables: Mapping[str, Any]) -> Any:
    """Look up a dotted name without running the user's code."""
    first, *rest = name.split(".")
    value = variables.get(first)
    for part in rest:
        held = getattr(value, "__dict__", {})
        within = (held, *(held.get(kind) or {} for kind in ("_parameters", "_buffers", "_modules")))
        value = next((places[part] for places in within if part in places), None)
    return value


def _reshape(crash: Crash) -> ReshapeMisfit | None:
    found = re.search(r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)", crash.facts.message)
    if found is None:
        return None
    wanted, size = _sizes(found[1]), int(found[2])
    if crash.variables:
        code = crash.facts.frames[-1].code or ""
        for name in re.findall(r"(?<![\w.)])([A-Za-z_][\w.]*)\.(?:view|reshape)\(", code):
            value = _resolved(name, crash.variables[-1])
            if is_tensor(value) and value.numel() == size:
                return ReshapeMisfit(wanted, size, name, tuple(value.shape))
    return ReshapeMisfit(wanted, size)


def _weights(crash: Crash) -> WeightsMisfit | None:
    message = crash.facts.message
    found = re.search(r"Error\(s\) in loading state_dict for (\w+)", message)
    size = r"torch\.Size\(\[([\d, ]*)\]\)"
    differing = re.findall(
        rf"size mismatch for ([\w.]+): copying a param with shape {size} from checkpoint, the shape in current "
        rf"model is {size}",
        message,
    )
    if found is None or not differing:
        return None
    weights = {name: (_sizes(saved), _sizes(built)) for name, saved, built in differing}
    return WeightsMisfit(found[1], weights, pretrained="ignore_mismatched_sizes" in message)


def _pretrained_weights(crash: Crash) -> WeightsMisfit | None:
    """Read the table that transformers 5 prints before it fails, from the frame that holds it."""
    if "You set `ignore_mismatched_sizes` to `False`" not in crash.facts.message:
        return None
    for variables in crash.inward("log_state_dict_report"):
        differing = sorted(variables["loading_info"].mismatched_keys)
        weights = {name: (tuple(saved), tuple(built)) for name, saved, built in differing}
        return WeightsMisfit(type(variables["model"]).__name__, weights, pretrained=True)
    size = r"torch\.Size\(\[([\d, ]*)\]\)"
    rows = re.findall(rf"([\w.]+) +\| MISMATCH +\|.* ckpt: {size} vs model: ?{size}", crash.log)
    model = re.search(r"(\w+) LOAD REPORT", crash.log)
    weights = {name: (_sizes(saved), _sizes(built)) for name, saved, built in rows}
    return WeightsMisfit("model" if model is None else model[1], weights, pretrained=True) if weights else None


def _window(crash: Crash) -> WindowMisfit | None:
    message = crash.facts.message
    if found := re.search(
        r"padded input size per channel: \(([\d x]+)\)\. Kernel size: \(([\d x]+)\)\. Kernel size "
        r"can't be greater",
        message,
    ):
        return WindowMisfit(_sizes(found[1]), _sizes(found[2]))
    if found := re.search(
        r"Given input size: \(([\dx]+)\)\. Calculated output size: \([-\dx]+\)\. Output size", message
    ):
        return WindowMisfit(_sizes(found[1]))
    return None


RECOGNISERS: tuple[Callable[[Crash], ShapeSymptom | None], ...] = (
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
