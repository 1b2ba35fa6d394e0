"""What the sizes in a shape error prove about its cause, and the line that repairs it.

Each function returns what is seen, as a sentence or an empty string, and the repair.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from diagnostics.facts.shapes import AxesMisfit, LayerMisfit, OperandsMisfit, ReshapeMisfit, Shape, WeightsMisfit

Repair = tuple[str, str]

_CHANNELS_FIRST = {3: "x.transpose(1, 2)", 4: "x.permute(0, 3, 1, 2)", 5: "x.permute(0, 4, 1, 2, 3)"}
_ALPHA = "x[:, :3] before it, if the fourth is an image's alpha channel; else {}"


def of_layer(symptom: LayerMisfit) -> Repair:
    """Repair the input where the numbers say so, else the layer."""
    shape = symptom.shape
    if shape is None:
        return _of_rows(symptom)
    for repair in _LAST_AXIS if symptom.axis == len(shape) - 1 else _AXIS_OF_CHANNELS:
        if found := repair(symptom, shape):
            return found
    return "", rebuilt(symptom, symptom.got)


def rebuilt(symptom: LayerMisfit, size: int) -> str:
    """Say how the layer is made for another size."""
    if symptom.rebuilt is None:
        return f"give it {symptom.wanted} there, or build it for {size}"
    layer = symptom.rebuilt.format(size)
    return f"{layer} for {symptom.path}" if symptom.path else layer


def values_each(shape: Shape) -> int | None:
    """Count the values of one example, the first axis being the batch's; None if a size is open."""
    sizes = [size for size in shape[1:] if size is not None]
    return math.prod(sizes) if len(sizes) == len(shape) - 1 else None


def _of_rows(symptom: LayerMisfit) -> Repair:
    """From a text: PyTorch lays out any input of a Linear as a table, and prints only that."""
    rows, got, wanted = symptom.rows, symptom.got, symptom.wanted
    change = rebuilt(symptom, got)
    if rows and wanted % got == 0 and rows % (wanted // got) == 0:
        each = wanted // got
        square = wanted % got**2 == 0  # a map as high as wide, of some channels
        if rows == each or (square and got > 1):
            examples = rows // each
            return (
                f"If the input has more than two axes, its {rows} rows of {got} are {examples} "
                f"{'example' if examples == 1 else 'examples'} of {wanted}, not flattened.",
                f"x.flatten(1) before it, if that is so; else {change}",
            )
    return "", change


def _flatten(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if len(shape) < 3 or values_each(shape) != symptom.wanted:
        return None
    sizes = " x ".join(str(size) for size in shape[1:])
    seen = f"Flattened, each example has {sizes} = {symptom.wanted} values."
    if symptom.layer == "model":
        return seen, "x.reshape(len(x), -1) before it, or keras.layers.Flatten() as its first layer"
    return seen, f"{'x.flatten(1)' if symptom.library == 'torch' else 'keras.layers.Flatten()'} before it"


def _pool_or_move(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if len(shape) == 2 and shape[0] == symptom.wanted and symptom.library == "torch":
        return "", f"{rebuilt(symptom, symptom.got)}; or x.T before it, if its rows are the features"
    places = [axis for axis, size in enumerate(shape[:-1]) if axis > 0 and size == symptom.wanted]
    if len(places) != 1:
        return None
    (axis,) = places
    seen = f"It has the {symptom.wanted} along axis {axis}."
    if symptom.library == "keras":
        order = (*(n for n in range(len(shape)) if n != axis), axis)
        return seen, f"keras.ops.transpose(x, {order}) before it"
    if symptom.layer == "Linear" and len(shape) == 4 and axis == 1:
        return (
            seen,
            "x.mean((2, 3)) before it, which averages each map; or x.movedim(1, -1), which keeps the places",
        )
    return seen, f"x.{'transpose(1, 2)' if (len(shape), axis) == (3, 1) else f'movedim({axis}, -1)'} before it"


def _batch_flattened_too(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if len(shape) != 1 or symptom.got <= symptom.wanted or symptom.got % symptom.wanted:
        return None
    count = symptom.got // symptom.wanted
    return (
        f"{symptom.got} is {count} times {symptom.wanted}: so many a batch of {count} has, flattened from axis 0.",
        f"x.flatten(1), which keeps the batch, if that is so; else {rebuilt(symptom, symptom.got)}",
    )


def _flatten_and_rebuild(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    each = values_each(shape)
    if symptom.layer != "Linear" or len(shape) not in (4, 5) or each is None:
        return None
    return (
        f"Flattened, each example would have {each} values, not {symptom.wanted}.",
        f"x.flatten(1) before it and {rebuilt(symptom, each)}",
    )


def _channels_last(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    axis = symptom.axis
    if axis is None or len(shape) < 3 or shape.count(symptom.wanted) != 1 or shape[-1] != symptom.wanted:
        return None
    if symptom.library == "keras":
        return None
    move = _CHANNELS_FIRST[len(shape)] if axis == 1 and len(shape) in _CHANNELS_FIRST else f"x.movedim(-1, {axis})"
    return f"It has the {symptom.wanted} along its last axis: the channels come last, and belong first.", (
        f"{move} before it"
    )


def _no_axis_of_channels(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if symptom.axis != 0 or symptom.wanted != 1:
        return None
    return (
        f"Without an axis of channels it is taken for one example of {symptom.got} channels.",
        "x.unsqueeze(1) before it",
    )


def _maybe_no_axis_of_channels(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if symptom.library == "keras" or (symptom.wanted, shape[0]) != (1, 1):
        return None
    return (
        "PyTorch prints an input without an axis of channels like this, too: as one example with many.",
        f"x.unsqueeze(1) before it, if the input has none; else {rebuilt(symptom, symptom.got)}",
    )


def _colours(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if len(shape) != 4 or symptom.library == "keras" or not (symptom.layer or "Conv").startswith("Conv"):
        return None
    change = rebuilt(symptom, symptom.got)
    if (symptom.wanted, symptom.got) == (3, 1):
        return "One channel is a grayscale image, three are colours.", f"{change}; or x.expand(-1, 3, -1, -1)"
    if (symptom.wanted, symptom.got) == (3, 4):
        return "", _ALPHA.format(change)
    return None


_Layout = Callable[[LayerMisfit, Shape], Repair | None]
_LAST_AXIS: tuple[_Layout, ...] = (_flatten, _pool_or_move, _batch_flattened_too, _flatten_and_rebuild)
_AXIS_OF_CHANNELS: tuple[_Layout, ...] = (
    _channels_last,
    _no_axis_of_channels,
    _maybe_no_axis_of_channels,
    _colours,
)


def of_axes(symptom: AxesMisfit) -> Repair:
    """Add the axis that is missing, where it is known which."""
    numbers = [int(number) for number in re.findall(r"\d+", symptom.wanted)]
    fewest, most = numbers[0], numbers[-1]
    shape, channels, name = symptom.shape, symptom.channels, symptom.layer or ""
    if symptom.library == "keras":
        if symptom.got == fewest - 1:
            return "", "keras.ops.expand_dims(x, -1) before it, which adds an axis of size 1 at the end"
        return "", f"keras.layers.Reshape(...) before it, to {symptom.wanted} axes with the batch's"
    if symptom.got > most:
        extra = symptom.got - most
        count = {1: "two", 2: "three"}.get(extra, str(extra + 1))
        return "", f"x.flatten(0, {extra}) before it, if the first {count} axes together are the batch's"
    if name.startswith("Conv") and shape is not None and len(shape) == 2 and channels and shape[1]:
        side = math.isqrt(shape[1] // channels)
        if fewest == 3 and side * side * channels == shape[1]:
            return (
                f"{shape[1]} values are those of {channels} x {side} x {side}.",
                f"x.view(-1, {channels}, {side}, {side}) before it, if they are an image's",
            )
        if fewest == 2 and channels == 1:
            return "", "x.unsqueeze(1) before it"
    if channels == 1 and symptom.got == most - 1:
        return "", "x.unsqueeze(1) before it, which adds the axis of channels"
    return "", f"bring it to {symptom.wanted} axes before it: x.unsqueeze(...) adds one, x.view(...) splits one"


def of_operands(symptom: OperandsMisfit) -> Repair:
    """Turn or stretch one of two tensors, where that makes them fit."""
    shapes = tuple(symptom.tensors.values()) or symptom.shapes
    names = tuple(symptom.tensors) or ("the first", "the second")
    if symptom.operation == "concatenation":
        return _concatenation(symptom, shapes)
    if len(shapes) != 2:
        return "", "print the shapes just before this line, and bring the tensors to sizes that go together"
    (one, a), (other, b) = zip(names, shapes, strict=True)
    if symptom.operation == "matrix product":
        return "", _matrix_product(one, a, other, b)
    if symptom.library == "keras":
        return "", "change the layers before, or the data, so that the two sizes are equal"
    for name, short, long in ((other, b, a), (one, a, b)):
        if len(short) < len(long) and long[: len(short)] == short:
            added = ".unsqueeze(-1)" * (len(long) - len(short))
            return f"{name} has the first axes of the other and lacks the last.", f"{name}{added}"
    if len(a) == len(b) == 2 and a == b[::-1]:
        return "The one is the other turned over.", f"{other}.T, or {one}.T"
    return "", "bring the two to the same sizes, or to 1 along an axis that is to be stretched"


def _matrix_product(one: str, a: Shape, other: str, b: Shape) -> str:
    if len(a) >= 2 and len(b) >= 2:
        if a[-1] == b[-1]:
            return f"transpose {other}: it then has {b[-1]} rows for the {a[-1]} columns"
        if a[-2] == b[-2]:
            return f"transpose {one}: it then has {a[-2]} columns for the {b[-2]} rows"
    return f"change where they are made: {one} must have as many columns as {other} has rows"


def _concatenation(symptom: OperandsMisfit, shapes: tuple[Shape, ...]) -> Repair:
    """Tell maps that were halved and doubled again from tensors that fit along another axis."""
    maps = {len(shape) for shape in shapes} <= {4, 5} and symptom.axis in (1, None)
    pooled = "a map of an odd size, halved by pooling and doubled again, comes back one short."
    if symptom.library == "torch" and maps and abs(symptom.one - symptom.other) == 1:
        seen = pooled.capitalize() if shapes else f"If these are maps: {pooled}"
        return seen, "pad the smaller one (torch.nn.functional.pad), or crop the larger"
    if len(shapes) == 2 and len(shapes[0]) == len(shapes[1]):
        differing = [axis for axis, (a, b) in enumerate(zip(*shapes, strict=True)) if a != b]
        if len(differing) == 1:
            (axis,) = differing
            return "", f"join them along axis {axis}, the only one that differs, or make that one equal"
    return "", "make the tensors equal along every axis but the one that they are joined along"


def of_reshape(symptom: ReshapeMisfit) -> Repair:
    """Keep the batch axis as it is, where a shape was written out for another batch."""
    first, *rest = symptom.wanted
    name = symptom.tensor or "x"
    each = math.prod(rest)
    if symptom.library == "keras":
        return "", f"a target shape that holds {symptom.size} values"
    if first > 0 and rest and each > 0 and symptom.size % each == 0:
        rows = symptom.size // each
        return (
            f"It holds {rows} rows of {each}, not {first}: a loader's last batch is often smaller.",
            f"{name}.view(-1, {', '.join(map(str, rest))}), and {name}.size(0) wherever {first} is the batch's",
        )
    if symptom.shape is not None and len(symptom.shape) > 1 and len(rest) == 1:
        held = values_each(symptom.shape)
        return (
            f"Each example holds {held} values, not {abs(each)}.",
            f"{name}.flatten(1), and the next layer built for {held}",
        )
    return "", "x.flatten(1), which keeps the batch's axis, and the next layer built for what that gives"


def of_weights(symptom: WeightsMisfit) -> Repair:
    """Tell a head of another size, which can be replaced, from a model of other sizes."""
    owners = {name.rpartition(".")[0] for name in symptom.weights}
    outputs = {saved[:1] for saved, built in symptom.weights.values() if saved[1:] == built[1:]}
    if symptom.pretrained:
        return "", "from_pretrained(..., ignore_mismatched_sizes=True), which makes these weights anew"
    if len(owners) == 1 and len(outputs) == 1 and all(s[1:] == b[1:] for s, b in symptom.weights.values()):
        (owner,), ((size,),) = owners, outputs
        return (
            f"Only the number of outputs{f' of {owner}' if owner else ''} differs.",
            f"build {symptom.model} with {size} there, as it was saved, load, and then replace {owner or 'it'}",
        )
    return "", f"build {symptom.model} with the sizes that it had when it was saved, then load"
