"""Derives the cause and the fix of a shape error from its sizes.

Each public function returns the cause, a sentence or an empty string, and the fix.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from diagnostics.engine.rule import Fix
from diagnostics.facts.crash.shapes import (
    AxesMisfit,
    LayerMisfit,
    OperandsMisfit,
    ReshapeMisfit,
    Shape,
    WeightsMisfit,
)
from diagnostics.text.join import count_of, listed

Repair = tuple[str, Fix]
_CHANNELS_FIRST = {3: "x.transpose(1, 2)", 4: "x.permute(0, 3, 1, 2)", 5: "x.permute(0, 4, 1, 2, 3)"}
LARGEST_KERNEL = 11  # along one axis, in common convolutions
_ALPHA = "use x[:, :3] before this layer, if the fourth channel is an image's alpha channel"

RECURRENT = ("lstm", "gru", "rnn")

_OF_IMAGE_SIZE = re.compile(
    r"attn_mask\d?$|relative_position_(?:bias_table|index)$|relative_coords_table$|rel_pos_[hw]$"
)


def of_layer(symptom: LayerMisfit) -> Repair:
    """Return a fix for the input if the sizes show one, otherwise for the layer."""
    shape = symptom.shape
    if shape is None:
        return _of_rows(symptom)
    for repair in _LAST_AXIS if symptom.axis == len(shape) - 1 else _AXIS_OF_CHANNELS:
        if found := repair(symptom, shape):
            return found
    return "", rebuilt(symptom, symptom.got)


def rebuilt(symptom: LayerMisfit, size: int) -> str:
    """Return the code that builds the layer for another size."""
    if symptom.rebuilt is None:
        if (symptom.layer or "").startswith("Conv"):
            wanted = count_of(symptom.wanted, "channel")
            return f"give the layer an input with {wanted}, or build it with {count_of(size, 'input channel')}"
        return f"give the layer an input of size {symptom.wanted}, or build it for size {size}"
    layer = symptom.rebuilt.format(size)
    return f"use {layer} for {symptom.path}" if symptom.path else f"use {layer}"


def values_each(shape: Shape) -> int | None:
    """Return the number of values per example, without the batch axis; None if a size is not fixed."""
    sizes = [size for size in shape[1:] if size is not None]
    return math.prod(sizes) if len(sizes) == len(shape) - 1 else None


def _of_rows(symptom: LayerMisfit) -> Repair:
    """Handle a pasted traceback, in which PyTorch prints any input of a Linear as a matrix of rows."""
    change = rebuilt(symptom, symptom.got)
    return _unflattened(symptom.rows, symptom.got, symptom.wanted, change) or ("", change)


def _unflattened(rows: int | None, got: int | None, wanted: int | None, change: str) -> Repair | None:
    """Read rows that are the last axes of feature maps, where the layer takes whole maps."""
    if not rows or not got or not wanted or wanted % got or rows % (wanted // got):
        return None
    each = wanted // got
    square = wanted % got**2 == 0  # square feature maps with several channels
    if rows != each and not (square and got > 1):
        return None
    return (
        f"Its {rows:,} rows of {got} values may be {count_of(rows // each, 'example')} of {wanted} values that "
        "were not flattened, or lack the batch axis, so that flatten(1) kept the channels as rows.",
        (
            "call x.flatten(1) before this layer, if the input has more than two axes",
            "if the code flattens already: pass a batch, model(x.unsqueeze(0)) for one example",
            change,
        ),
    )


def _flatten(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if len(shape) < 3 or values_each(shape) != symptom.wanted:
        return None
    sizes = " x ".join(str(size) for size in shape[1:])
    seen = f"Flattened, each example has {sizes} = {symptom.wanted} values."
    if symptom.layer == "model":
        return seen, ("x = x.reshape(len(x), -1)", "keras.layers.Flatten() as the model's first layer")
    call = "call x.flatten(1)" if symptom.library == "torch" else "add keras.layers.Flatten()"
    return seen, f"{call} before this layer"


def _pool_or_move(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if len(shape) == 2 and shape[0] == symptom.wanted and symptom.library == "torch":
        return "", (
            rebuilt(symptom, symptom.got),
            "use x.T before this layer, if the features are in the rows of x",
        )
    places = [axis for axis, size in enumerate(shape[:-1]) if axis > 0 and size == symptom.wanted]
    if len(places) != 1:
        return None
    (axis,) = places
    seen = f"Axis {axis} of the input has size {symptom.wanted}."
    if symptom.library == "keras":
        order = (*(n for n in range(len(shape)) if n != axis), axis)
        return seen, f"call keras.ops.transpose(x, {order}) before this layer"
    if symptom.layer == "Linear" and len(shape) == 4 and axis == 1:
        return (
            seen,
            (
                "to average over each feature map, call x.mean((2, 3)) before this layer",
                "to keep the positions, call x.movedim(1, -1) before this layer",
            ),
        )
    return seen, (
        f"call x.{'transpose(1, 2)' if (len(shape), axis) == (3, 1) else f'movedim({axis}, -1)'} before this layer"
    )


def _batch_flattened_too(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if len(shape) != 1 or symptom.got <= symptom.wanted or symptom.got % symptom.wanted:
        return None
    count = symptom.got // symptom.wanted
    return (
        f"{symptom.got} is {count} x {symptom.wanted}: the batch axis was probably flattened too, with "
        f"{count_of(count, 'example')} in the batch.",
        (
            f"if the batch has {count_of(count, 'example')}, use x.flatten(1), which keeps the batch axis",
            rebuilt(symptom, symptom.got),
        ),
    )


def _flatten_and_rebuild(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    each = values_each(shape)
    if symptom.layer != "Linear" or len(shape) not in (4, 5) or each is None:
        return None
    return (
        f"Flattened, each example would have {each} values, not {symptom.wanted}.",
        f"call x.flatten(1) before this layer, and {rebuilt(symptom, each)}",
    )


def _channels_last(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    axis = symptom.axis
    if axis is None or len(shape) < 3 or shape.count(symptom.wanted) != 1 or shape[-1] != symptom.wanted:
        return None
    if symptom.library == "keras":
        return None
    move = _CHANNELS_FIRST[len(shape)] if axis == 1 and len(shape) in _CHANNELS_FIRST else f"x.movedim(-1, {axis})"
    return (
        f"The input's last axis has size {symptom.wanted}: the channels are last, but this layer expects them "
        "first.",
        f"call {move} before this layer",
    )


def _channels_elsewhere(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    """Read an input that has the channels one axis later, and one example: the batch was read as channels."""
    if symptom.library == "keras" or symptom.axis != 1 or len(shape) != 4 or shape[0] != 1:
        return None
    if shape[2] != symptom.wanted or symptom.wanted == 1:
        return None
    each = (shape[2] or 0) * (shape[3] or 0)
    side = math.isqrt(shape[3] or 0)
    view = f"{symptom.wanted}, {side}, {side}" if side * side == shape[3] else f"{symptom.wanted}, height, width"
    return (
        f"Axis 2 has size {symptom.wanted}: the input had only 3 axes, {shape[1:]}, and PyTorch read it as one "
        f"example with {symptom.got} channels. These are probably {symptom.got} examples of {each} values without "
        "their height and width.",
        (
            f"call x.view(-1, {view}) before this layer, if each example is an image",
            "print(x.shape) just before the layer: it takes (batch, channels, height, width)",
        ),
    )


def _no_axis_of_channels(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if symptom.axis != 0 or symptom.wanted != 1:
        return None
    return (
        f"Without a channel axis, the input is read as one example with {symptom.got} channels.",
        "call x.unsqueeze(1) before this layer",
    )


def _maybe_no_axis_of_channels(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if symptom.library == "keras" or (symptom.wanted, shape[0]) != (1, 1):
        return None
    return (
        "PyTorch reports an input without a channel axis in the same way, as one example with many channels.",
        ("call x.unsqueeze(1) before this layer, if the input has no channel axis", rebuilt(symptom, symptom.got)),
    )


def _colours(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if len(shape) != 4 or symptom.library == "keras" or not (symptom.layer or "Conv").startswith("Conv"):
        return None
    change = rebuilt(symptom, symptom.got)
    if (symptom.wanted, symptom.got) == (3, 1):
        return "The input is grayscale (1 channel) instead of RGB (3).", (change, "x.expand(-1, 3, -1, -1)")
    if (symptom.wanted, symptom.got) == (3, 4):
        return "", (_ALPHA, change)
    return None


def _maybe_channels_last(symptom: LayerMisfit, shape: Shape) -> Repair | None:
    if len(shape) != 3 or symptom.axis != 1 or symptom.library == "keras" or symptom.layer != "Conv1d":
        return None
    return (
        "Conv1d expects (batch, channels, length).",
        (
            "call x.transpose(1, 2) before this layer, if the last axis holds the channels; the layer needs "
            f"{symptom.wanted} channels",
            rebuilt(symptom, symptom.got),
        ),
    )


_Layout = Callable[[LayerMisfit, Shape], Repair | None]

_LAST_AXIS: tuple[_Layout, ...] = (_flatten, _pool_or_move, _batch_flattened_too, _flatten_and_rebuild)

_AXIS_OF_CHANNELS: tuple[_Layout, ...] = (
    _channels_last,
    _channels_elsewhere,
    _no_axis_of_channels,
    _maybe_no_axis_of_channels,
    _colours,
    _maybe_channels_last,
)


def _expansion(symptom: OperandsMisfit, target: Shape, tensor: Shape) -> Fix:
    spatial = len(target) > 2 and symptom.axis is not None and symptom.axis >= len(target) - 2
    if spatial and min(symptom.one, symptom.other) > 1:
        return (
            "resize image and mask (or the tensors computed from them) to one size before this line: "
            'F.interpolate(x, size=(h, w), mode="bilinear"), with mode="nearest" for a class mask',
            "print the two shapes just before the line, for the first examples",
        )
    if len(tensor) > len(target):
        return (
            "call x.squeeze(), or index x, which has more axes than the tensor it is written into",
            "print the two shapes just before the line",
        )
    return (
        "print the two shapes just before the line: a mask, position table or buffer has a different length",
        "if the larger size is a sequence's length: truncate to the model's maximum "
        "(truncation=True, max_length=...)",
    )


def of_operands(symptom: OperandsMisfit) -> Repair:
    """Transpose or expand one of two tensors if that makes their shapes match."""
    shapes = tuple(symptom.tensors.values()) or symptom.shapes
    names = tuple(symptom.tensors) or ("the first", "the second")
    if symptom.operation == "concatenation":
        return _concatenation(symptom, shapes)
    if symptom.operation == "expansion":
        return "", _expansion(symptom, *shapes)
    if symptom.operation == "optimizer step":
        return (
            "Either the parameter was resized after the optimizer had taken a step, or the state comes from a "
            "checkpoint of a model of a different size.",
            (
                "create the optimizer after the last change to the model, such as "
                "model.resize_token_embeddings(...)",
                "do not load optimizer state that was saved with a model of a different size",
            ),
        )
    if len(shapes) != 2:
        return "", (
            "print the shapes just before this line, and make them match",
            "in a loss: give prediction and target one shape; class indices need cross_entropy, and one-hot "
            "targets as many classes as the model has outputs",
            "in a skip connection: use sizes that halve without a remainder, or interpolate one tensor",
            "with positions or a mask: truncate the sequence to the model's maximum length",
        )
    (one, a), (other, b) = zip(names, shapes, strict=True)
    if symptom.library == "numpy" and abs(len(a) - len(b)) > 2:
        return (
            f"The arrays have {len(a)} and {len(b)} axes: one of them is probably a whole tuple of outputs that "
            "was converted to an array.",
            "logits = predictions[0] if isinstance(predictions, tuple) else predictions",
        )
    if symptom.operation == "matrix product":
        fix = _matrix_product(one, a, other, b)
        if symptom.tensors or symptom.library != "torch" or len(b) != 2:
            return "", fix
        # A message alone: most of these are of a Linear, whose weight PyTorch transposes.
        linear = f"use nn.Linear({a[-1]}, {b[-1]}), if this is a Linear layer and its input is correct"
        of_images = (
            "if the inputs are images, resize them to the size that the network was built for",
            "put nn.AdaptiveAvgPool2d before flattening, so that the number of features does not depend on "
            "the image size",
        )
        in_features = f"If this is a Linear layer, it has in_features={b[0]}."
        if len(a) == 2 and (repair := _unflattened(a[0], a[1], b[0], linear)):
            return f"{in_features} {repair[0]}", repair[1]
        return in_features, (linear, *of_images, fix)
    if len(a) == len(b) > 1 and a[1:] == b[1:]:
        x, drop = ("tf.shape(x)", "drop_remainder") if symptom.library == "keras" else ("x.shape", "drop_last")
        return "The shapes differ only in the number of rows, that is, in the batch size.", (
            f"use {x}[0] instead of a fixed batch size",
            f"set {drop}=True, which drops a smaller last batch",
        )
    if symptom.library == "keras":
        return _of_keras_operands(a, b)
    for name, short, long in ((other, b, a), (one, a, b)):
        if len(short) < len(long) and long[: len(short)] == short:
            axes = "axis" if len(long) - len(short) == 1 else "axes"
            added = ".unsqueeze(-1)" * (len(long) - len(short))
            seen = f"{name if symptom.tensors else name.capitalize()} lacks the last {axes} of the other."
            if symptom.library == "numpy":
                return seen, f"{name if symptom.tensors else 'x'}[..., None], to broadcast it along the last axis"
            return seen, f"{name if symptom.tensors else 'x'}{added}"
    if len(a) == len(b) == 2 and a == b[::-1]:
        return "One is the transpose of the other.", (f"{other}.T", f"{one}.T")
    return "", "make the sizes equal, or make one of them 1 along an axis that should broadcast"


def _of_keras_operands(a: Shape, b: Shape) -> Repair:
    for flat, other in ((a, b), (b, a)):
        if len(flat) == 1 < len(other) and None not in other and flat[0] == math.prod(other):  # type: ignore[arg-type]
            return f"{flat[0]} is {' x '.join(map(str, other))}: one of the two is the other, flattened.", (
                "leave out the reshape or flatten, or flatten both",
                "if one is the target: give y the shape of the model's output",
            )
    return "", (
        "change the preceding layers, or the data, so that the two sizes are equal",
        "if this is a loss or a metric: give y the shape of the model's output, with as many columns as the last "
        "layer has outputs",
    )


def _matrix_product(one: str, a: Shape, other: str, b: Shape) -> str:
    if len(a) >= 2 and len(b) >= 2:
        if a[-1] == b[-1]:
            return f"transpose {other}, so that its {b[-1]} rows match the {a[-1]} columns of {one}"
        if a[-2] == b[-2]:
            return f"transpose {one}, so that its {a[-2]} columns match the {b[-2]} rows of {other}"
    return f"change the code that creates the matrices: {one} must have as many columns as {other} has rows"


def _concatenation(symptom: OperandsMisfit, shapes: tuple[Shape, ...]) -> Repair:
    """Distinguish feature maps that were pooled and upsampled from tensors joined along the wrong axis."""
    maps = {len(shape) for shape in shapes} <= {4, 5} and symptom.axis in (1, None)
    pooled = "a feature map with an odd size loses one row or column when it is pooled by 2 and upsampled by 2"
    of_keras = {len(shape) for shape in shapes} == {4} and abs(symptom.one - symptom.other) == 1
    if symptom.library == "keras" and of_keras and min(symptom.one, symptom.other) > 1:
        return "", (
            "resize or pad the images so that their height and width are divisible by the network's total stride "
            "(32 for most encoders)",
            "apply keras.layers.Cropping2D or ZeroPadding2D to one of the tensors before you concatenate them",
        )
    if symptom.library == "torch" and maps and abs(symptom.one - symptom.other) == 1:
        seen = (
            f"{pooled.capitalize()}."
            if shapes
            else f"If these are feature maps, the cause may be an odd size: {pooled}."
        )
        return seen, ("pad the smaller tensor (torch.nn.functional.pad)", "crop the larger tensor")
    if len(shapes) == 2 and len(shapes[0]) == len(shapes[1]):
        differing = [axis for axis, (a, b) in enumerate(zip(*shapes, strict=True)) if a != b]
        if len(differing) == 1:
            (axis,) = differing
            return "", (
                f"concatenate the tensors along axis {axis}, the only axis along which their sizes differ",
                f"make all tensors the same size along axis {axis}",
            )
    return "", "make the tensors equal along every axis except the concatenation axis"


def of_reshape(symptom: ReshapeMisfit) -> Repair:
    """Keep the batch axis if the shape was written for another batch size."""
    first, *rest = symptom.wanted
    name = symptom.tensor or "x"
    each = math.prod(rest)
    if symptom.library == "keras" or (symptom.library == "numpy" and (symptom.size or 0) % (each or 1)):
        return "", f"make the number of values and the target shape match: there are {symptom.size} values"
    if symptom.library == "torch" and symptom.shape is None and len(rest) == 2 and first == rest[0] > 3:
        return (
            f"If it is meant to be an image or a mask of {first} x {first}, it was created with a different size.",
            (
                f"resize the image to {first} x {first} when you read it",
                "print the image's size and number of channels",
            ),
        )
    if first > 0 and rest and each > 0 and symptom.size % each == 0:
        rows = symptom.size // each
        if symptom.library == "numpy":
            return (
                f"It has {rows} rows of {each} values, not {first} rows.",
                f"array.reshape(-1, {', '.join(map(str, rest))}), if each example has {each} values",
            )
        open_view = f"{name}.view(-1, {', '.join(map(str, rest))})"
        if rows < first:
            return (
                f"It has {rows} rows of {each} values, not {first} rows: the last batch of a loader is often "
                "smaller.",
                f"use {open_view}, and {name}.size(0) instead of the hard-coded batch size {first}",
            )
        more = {2: "twice"}.get(rows // first, f"{rows // first} times")
        times = f", {more} as many as the expected {first}" if rows % first == 0 else f", not {first}"
        return (
            f"It has {rows} rows of {each} values{times}. Either the rows include an axis that the code "
            "counts separately (heads, channels, positions, several inputs in one batch), or the examples "
            "are larger than expected.",
            (f"print({name}.shape) where {name} is created", f"{open_view}, if each example has {each} values"),
        )
    if symptom.shape is not None and len(symptom.shape) > 1 and len(rest) == 1:
        held = values_each(symptom.shape)
        return (
            f"Each example has {held} values, not {abs(each)}.",
            f"use {name}.flatten(1), and build the next layer with {held} input features",
        )
    keep = "use x.flatten(1), which keeps the batch axis, and set in_features of the next layer to match"
    if symptom.shape is None and len(rest) == 3 and rest[-1] == rest[-2] <= LARGEST_KERNEL:  # as in convolutions
        return (
            "If these are weights read from a file, the file is truncated or was saved with a different "
            "configuration (number of classes or filters).",
            ("use the configuration that the file was saved with", "download the file again", keep),
        )
    return "", keep


def of_axes(symptom: AxesMisfit) -> Repair:
    """Add the missing axis, if it is known which one."""
    numbers = [int(number) for number in re.findall(r"\d+", symptom.wanted)]
    of_library = _of_keras if symptom.library == "keras" else _of_torch
    return of_library(symptom, numbers[0], numbers[-1])


def _of_keras(symptom: AxesMisfit, fewest: int, most: int) -> Repair:
    shape = symptom.shape
    if symptom.is_one_example:
        return "That is the shape of one example, and the model takes a batch of them.", (
            "add the batch axis: model.predict(x[None]), or x[:1] in place of x[0]",
            "dataset.batch(n), if a tf.data.Dataset yields single examples",
        )
    if symptom.got == 2 < fewest and shape is not None and shape[-1] == 1:
        sequences = "Recurrent and 1D convolutional layers take (batch, steps, features). " if fewest == 3 else ""
        return f"{sequences}If each row of the input is itself an array, the input's dtype is object.", (
            "print(x.dtype); if the dtype is object, use x = np.stack(x.ravel()) with examples of equal shape",
            "set x = x[..., None] before this layer, if each example is one number or a sequence of numbers",
            "dataset.batch(n), if a tf.data.Dataset yields single examples",
        )
    if symptom.got == 2 and fewest == 3 and any(kind in (symptom.layer or "").lower() for kind in RECURRENT):
        return "This layer expects a sequence but got one vector per example.", (
            "set return_sequences=True in the preceding layer, if that layer is recurrent: by default, it returns "
            "only its last state",
            "set x = x[..., None] before this layer, if each value is one time step",
        )
    if symptom.got == fewest - 1:
        return "", "set x = x[..., None] before this layer, to add a trailing axis of size 1"
    reshape = (
        f"add keras.layers.Reshape(...) before this layer, to get {symptom.wanted} axes including the batch axis"
    )
    ones = [axis for axis, size in enumerate(shape or ()) if axis and size == 1]
    if symptom.got == most + 1 and ones:
        axis = -1 if ones[-1] == symptom.got - 1 else ones[-1]
        return f"Axis {ones[-1]} of the input has size 1.", (
            f"x.squeeze({axis})",
            "remove the np.newaxis or expand_dims that adds this axis",
            "keras.Input(shape=x.shape[1:]), if input_shape included the number of rows",
        )
    if symptom.got == 3 and most == 2:
        return "", (
            "x.reshape(len(x), -1), if the first layer is Dense",
            "pass ids of shape (n, length), if the first layer is an Embedding, which looks up the vectors",
            "use keras.Input(shape=x.shape[1:]) without the Embedding, if the inputs are already vectors",
        )
    if symptom.got > most:
        return "", ("keras.Input(shape=x.shape[1:]), if input_shape included the number of rows", reshape)
    return "", reshape


def _of_torch(symptom: AxesMisfit, fewest: int, most: int) -> Repair:
    shape, channels, name = symptom.shape, symptom.channels, symptom.layer or ""
    if symptom.got == 1 < fewest and name.startswith("Conv"):
        return "An input with one value per example looks like a batch of labels or indices.", (
            "print the shapes of what the data loader yields, and check the order in which the loop unpacks them",
            "return the example first in __getitem__, and its label second",
        )
    if symptom.got > most:
        extra = symptom.got - most
        count = {1: "two", 2: "three"}.get(extra, str(extra + 1))
        return (
            "",
            f"call x.flatten(0, {extra}) before this layer, if the first {count} axes together are the batch",
        )
    if name.startswith("Conv") and symptom.got == fewest - 1 and shape is not None and (channels or 0) > 1:
        if shape[0] == channels:
            return "", "to add the batch axis, call x.unsqueeze(0) before this layer"
        if shape[-1] == channels:
            move = "x.T" if len(shape) == 2 else "x.movedim(-1, 0)"
            return f"The input's last axis has size {channels}: the channels are last.", (
                f"use {move}.unsqueeze(0) before this layer, if x is one example without a batch axis",
            )
    if name.startswith("Conv") and shape is not None and len(shape) == 2 and shape[1]:
        side = math.isqrt(shape[1] // (channels or 1))
        if channels and fewest == 3 and side > 1 and side * side * channels == shape[1]:
            return (
                f"{shape[1]} = {channels} x {side} x {side}.",
                f"call x.view(-1, {channels}, {side}, {side}) before this layer, if each row is an image",
            )
        if fewest == 3 and not channels and side > 4 and side * side == shape[1]:
            return f"{shape[1]} = {side} x {side}: each row may be a flattened image.", (
                f"call x.view(-1, 1, {side}, {side}) before this layer, if each row is an image",
                "call x[None, None] before this layer, if x is one image without batch and channel axes",
            )
        if fewest == 2 and channels == 1:
            return "", "call x.unsqueeze(1) before this layer"
    if channels == 1 and symptom.got == most - 1:
        return "", "to add the channel axis, call x.unsqueeze(1) before this layer"
    if name.startswith("Conv") and symptom.got == fewest - 1 and (channels is None or symptom.path is None):
        return "", (
            "call x.unsqueeze(0) before this layer, if x is one example without a batch axis",
            "call x.unsqueeze(1) before this layer, if x is a batch without a channel axis",
        )
    return "", f"reshape the input to {symptom.wanted} axes: x.unsqueeze(...) adds an axis, x.view(...) splits one"


def of_weights(symptom: WeightsMisfit) -> Repair:
    """Distinguish a head of a different size, which can be replaced, from a different model."""
    if of_size := _of_image_size(symptom):
        return of_size
    if (of_adapter := _of_adapter(symptom)) is not None:
        return of_adapter
    owners = {name.rpartition(".")[0] for name in symptom.weights}
    outputs = {saved[:1] for saved, built in symptom.weights.values() if saved[1:] == built[1:]}
    if symptom.pretrained:
        return "", "from_pretrained(..., ignore_mismatched_sizes=True), which reinitialises these weights"
    built = {new[:1] for saved, new in symptom.weights.values() if saved[1:] == new[1:]}
    only_outputs = len(outputs) == len(built) == 1 and all(s[1:] == b[1:] for s, b in symptom.weights.values())
    if only_outputs and len(owners) > 1:
        ((size,),) = outputs
        return (
            f"Only the number of outputs of {listed(sorted(owners), most=4)} differs.",
            f"build {symptom.model} with {size} outputs, as in the checkpoint, load the weights, then replace "
            "these layers",
        )
    if only_outputs:
        (owner,), ((size,),) = owners, outputs
        if re.search("embed|emb$|wte|wpe", owner.lower()):
            return _of_embedding(symptom, owner, size)
        return (
            f"Only the number of outputs{f' of {owner}' if owner else ''} differs.",
            f"build {symptom.model} with {size} outputs, as in the checkpoint, load the weights, then replace "
            f"{owner or 'that layer'}",
        )
    differing = {
        tuple(axis for axis, (a, b) in enumerate(zip(saved, new, strict=True)) if a != b)
        if len(saved) == len(new)
        else ()
        for saved, new in symptom.weights.values()
    }
    if differing == {(1,)} and len(symptom.weights) == 1:
        (name,), ((saved, new),) = symptom.weights, symptom.weights.values()
        return (
            f"Only the number of inputs of {name.rpartition('.')[0] or name} differs.",
            (
                f"give the layer {saved[1]} inputs, as in the checkpoint (image channels, table columns, or "
                "the size of the flattened or concatenated input)",
                f"load all weights except this one, and retrain this layer for {new[1]} inputs",
            ),
        )
    build = f"build {symptom.model} with the sizes in the checkpoint, then load the weights"
    pairs = [
        [(a, b) for a, b in zip(saved, new, strict=False) if a != b] for saved, new in symptom.weights.values()
    ]
    of_outputs = any(len(saved) == 1 for saved, _ in symptom.weights.values())  # a bias has one number per output
    if of_outputs and len(pairs) > 1 and () not in differing and all(each == pairs[0][:1] for each in pairs):
        was, now = pairs[0][0]
        return (
            f"In all of these weights, one size is {was} in the checkpoint and {now} in the model, usually "
            "because the number of classes differs.",
            (
                "own = model.state_dict(); state = {key: value for key, value in state.items() if key in own and "
                "value.shape == own[key].shape}; model.load_state_dict(state, strict=False)  # the weights left "
                "out are trained from scratch",
                build,
            ),
        )
    return "", build


_ADAPTER = re.compile(r"\.lora_(?P<half>[AB])(?:\.|$)")


def _of_adapter(symptom: WeightsMisfit) -> Repair | None:
    """Explain LoRA weights by their rank and number of axes; None if other weights differ, too."""
    halves = {name: found["half"] for name in symptom.weights if (found := _ADAPTER.search(name))}
    if not halves or len(halves) < len(symptom.weights):
        return None
    of_a = {(saved[0], built[0]) for name, (saved, built) in symptom.weights.items() if halves[name] == "A"}
    seen = "The LoRA adapter was saved with another configuration or PEFT release."
    if len(of_a) == 1:
        ((saved_rank, rank),) = of_a
        if saved_rank != rank:
            seen = (
                f"{seen} lora_A has {saved_rank} rows in the file and {rank} in the model: this number is the "
                "rank r, or a multiple of it."
            )
    if axes := {(len(saved), len(built)) for saved, built in symptom.weights.values() if len(saved) != len(built)}:
        ((saved_axes, built_axes), *_) = axes
        seen = (
            f"{seen} A weight has {saved_axes} axes in the file and {built_axes} in the model: old PEFT "
            "releases stored adapters of merged layers, such as query_key_value, in this way, with several ranks "
            "in one lora_A."
        )
    return seen, (
        "load it with the configuration in its own folder: PeftModel.from_pretrained(base, adapter_folder); r and "
        "target_modules are in its adapter_config.json",
        "install the PEFT release that saved it, and use the same base model",
        "train the adapter again, if that release is not known",
    )


def _of_image_size(symptom: WeightsMisfit) -> Repair | None:
    """Explain window masks and position tables, which are built for one image size."""
    if not all(_OF_IMAGE_SIZE.search(name) for name in symptom.weights):
        return None
    name = listed([name.rpartition(".")[2] for name in symptom.weights][:1])
    return (
        f"{name} depends on the image size and the window size, which differ between the checkpoint and the "
        "model.",
        (
            f"build {symptom.model} with the img_size and window_size of the checkpoint, which are often part of "
            "its name",
            "remove computed masks and indices from the state dict, and load it with strict=False",
            "interpolate the saved position tables, as timm does if you pass img_size= to create_model",
        ),
    )


def _of_embedding(symptom: WeightsMisfit, owner: str, size: int | None) -> Repair:
    """Explain an embedding, whose first axis counts words, ids or positions."""
    if "pos" in owner.lower() or owner.endswith("wpe"):
        return (
            f"Only the number of positions of {owner} differs.",
            (
                f"build {symptom.model} for the length or image size of the checkpoint ({size} positions)",
                "interpolate the saved positions to the new length before loading",
            ),
        )
    return (
        f"Only the number of rows of {owner} differs: it has one row per word, id or item.",
        (
            f"use the checkpoint's vocabulary, tokenizer or list of ids, which has {size} entries; a list "
            "rebuilt from other data also numbers its entries differently",
            f"model.resize_token_embeddings({size}) before loading, for a transformers model with added tokens",
        ),
    )
