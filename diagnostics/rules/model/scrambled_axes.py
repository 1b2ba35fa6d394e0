"""See `ScrambledAxes`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.inputs import SwappedChannels
from diagnostics.facts.loss_call import LossCall, LossCalls
from diagnostics.facts.loss_graph import LossGraph, Node, RowsRead, known_sizes, numbers_at_start
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.shared.first_found import first_found
from diagnostics.rules.shared.reshaped_inputs import CHANNELS, put_back, reshaped_series

EACH = (
    *("Relu", "LeakyRelu", "Gelu", "Silu", "Elu", "Tanh", "Sigmoid", "Add", "Mul", "NativeBatchNorm"),
    *("NativeLayerNorm", "Clone", "NativeDropout"),
)
"""Operations that leave every number where it was."""

KEEP_ROWS = (*EACH, "View", "Transpose")
BY_ROWS = (
    *("LogSoftmax", "Softmax", "NativeLayerNorm", "Convolution", "Addmm", "Mm", "Bmm", "Baddbmm"),
    *("MkldnnRnnLayer", "CudnnRnn"),
)
"""Operations to which the last axis is one thing; a squared error of two views, both scrambled, is what it was."""

ADDED_BY_NUMBER = ("IndexAdd", "IndexPut", "ScatterAdd", "ScatterReduce")
"""Operations that add messages to nodes of a graph."""

NODES = 32  # least of a graph in which two messages cannot be all

KINDS = 16  # least number of different values in a row: zeros and ones would agree in many orders


class ScrambledAxes(Rule):
    """A `view` is used where axes should be permuted, so values end up in the wrong positions.

    ## What it does
    Searches the graph of the first loss for two kinds of views:

    - a view that turns the C channels of a convolution into rows of C values without moving the channels to the
      last axis, and
    - a view that turns (batch, a, b) into (batch, b, a).

    The rule reports a view only if its rows are then the input of a softmax, a layer with weights or a matrix
    product. It also compares the shapes that sequence scores and labels had before they were flattened for the
    loss. In Keras, it checks whether the first convolution treats channels-first images as channels-last. For
    colour images and smooth signals, it compares how similar neighbouring values are in the current axis order and
    in the other order. In PyTorch, it also compares the inputs with the tensor that reaches the first layer,
    and looks for layers of graph networks that look up exactly two nodes and add their messages to others, as with
    an edge index whose axes are swapped.

    ## Why it is bad
    `view` and `reshape` keep the order of the numbers in memory and only change the shape. A row of C values then
    contains C neighbouring pixels of one channel instead of the C scores of one pixel. Nothing fails, but each
    score is compared with the label of another pixel.

    ## Example
    ```python
    scores = net(images)                            # (batch, classes, height, width)
    loss = criterion(scores.view(-1, classes), labels.view(-1))
    ```

    ## Instead
    ```python
    loss = criterion(scores, labels)  # or scores.permute(0, 2, 3, 1).reshape(-1, classes)
    ```

    ## Thresholds
    A view is not reported if the number of channels equals the length of an image axis, or if one of `a` and `b`
    is a multiple of the other, because grouping neighbours may then be intended.

    Channels-first images must be square, with at least 8 pixels per side and 1 or 3 channels. Along both axes,
    neighbouring pixels must have a correlation of at least 0.3.

    For scrambled colour images, there must be at least 8 images with at least 16 pixels per side. The mean squared
    difference between neighbouring pixels must be lower in the other axis order: at most 60% of the difference in
    the current order, and at most half the difference between random pixels. The finding is then a warning.

    For signals of shape (batch, a, b), there must be at least 8 rows, and a and b must differ. The columns are
    first standardised, and values are compared by their mean squared difference. The usual step is the difference
    between values that are neighbours in time in the other axis order. Three conditions must hold:

    - The usual step is at most 70% of the difference between random values.
    - Where a row of b values ends, a step is at most 1.15 times the usual step.
    - Values that are not neighbours in time differ by at least 1.4 times the usual step, with a margin of three
      standard errors. If time was originally the last axis, the rule compares the values on either side of each
      end of an original channel. If time was the first axis, it compares values that are 1, a - 1, a + 1 or b
      places apart.

    The finding is then a warning.

    Messages between nodes are reported as a warning if a layer looks up exactly two of at least 32 nodes and adds
    the result to as many nodes, and no layer looks up more. The nodes must depend on weights.

    Two arrays in the script are reported as a warning if three conditions hold:

    - Their shapes differ only in the order of the axes after the first.
    - They contain the same numbers in the same order (in 8 rows, with at least 16 different values).
    - The model was given rows of the second shape.

    ## Known problems
    A `reshape` before the model is found only if it scrambles colour images or smooth signals, or if the original
    array is still in one of the script's global variables. A `view` between the inputs and the first layer with
    weights is found only in PyTorch, and only for float32 inputs of shape (batch, a, b).

    ## Sources
    Public reports of a `view` without a `permute`: in taggers with scores of shape (length, batch, tags) and
    labels of shape (batch, length), in attention over feature maps, and in pixel-wise losses; the documentation
    for `torch.Tensor.view`.
    """

    severity = "error"
    causes = ("evaluation-at-chance", "initial-loss-off", *NO_LEARNING)

    @check
    def from_graph(self, graph: LossGraph) -> Finding | None:
        """Report a view that should have moved an axis."""
        views = [index for index, node in enumerate(graph.nodes) if node.operation == "View" and node.trained]
        if not views:
            raise NotApplicable
        found = next((index for index in views if _is_scrambled(graph, index)), None)
        if found is None:
            return None
        shape, made = graph.nodes[found].operands[0].shape or (), graph.nodes[found].shape or ()
        swaps = len(shape) == 3 and made == (shape[0], shape[2], shape[1])
        what = (
            f"The view was probably meant to swap the last two axes, but it only splits the same values "
            f"into rows of {made[-1]}"
            if swaps
            else f"Each row of {made[-1]} values should hold the {shape[1]} channels of one position, but it "
            "holds several positions of one channel"
        )
        axes = "0, 2, 1" if len(shape) == 3 else "0, " + ", ".join(str(n) for n in range(2, len(shape))) + ", 1"
        result = ", ".join(map(str, made)) if len(made) != 2 else f"-1, {made[-1]}"
        return self.found(
            f"A view reshapes a tensor of shape {shape} to {made}. {what}, because a view does not move axes.",
            fix=f"x.permute({axes})" + ("" if len(made) == len(shape) else f".reshape({result})"),
            evidence={"shape": list(shape), "view": list(made)},
        )

    @check
    def from_messages(self, graph: LossGraph) -> Finding | None:
        """Report a graph network that sends two messages in all."""
        if not (messages := [rows for index in range(len(graph.nodes)) if (rows := _messages(graph, index))]):
            raise NotApplicable
        nodes = messages[0].there
        if nodes < NODES or any(rows.read != 2 for rows in messages):
            return None
        return self.found(
            f"A layer of the graph network looks up 2 of {nodes:,} nodes and adds their messages to other nodes, "
            "so it uses only two edges. An edge index of shape (edges, 2) was probably read as one of shape "
            "(2, edges): the nodes of the first edge were taken for all sources, those of the second for all "
            "targets. All other edges are ignored.",
            fix="edge_index = edge_index.t().contiguous()  # shape (2, edges)",
            severity="warning",
            evidence={"nodes": nodes, "messages": 2},
        )

    @check
    def from_first_layer(self, graph: LossGraph, batch: BatchFacts) -> Finding | None:
        """Report a view of the inputs that exchanges two axes before the first layer with weights."""
        series = [values for values in batch.inputs.values() if values.ndim == 3 and values.dtype.kind == "f"]
        read = [operand for node in graph.nodes for operand in node.operands if operand.beginning]
        if not series or not read:
            raise NotApplicable
        for values in series:
            size, a, b = values.shape
            if a == b or min(a, b) == 1 or len(np.unique(values[0])) < KINDS:
                continue
            viewed = values.reshape(size, b, a)
            beginning = numbers_at_start(viewed)
            time_first = numbers_at_start(viewed.transpose(1, 0, 2))  # as a GRU multiplies them
            for operand in read:
                rows = operand.shape == (size * b, a)
                if (operand.beginning == beginning and (rows or operand.shape == viewed.shape)) or (
                    operand.beginning == time_first and rows
                ):
                    return self.found(
                        f"The first layer reads the inputs of shape {values.shape} as shape {(size, b, a)}, with "
                        "the same numbers in the same order: a view or reshape does not move axes. Each row of "
                        f"{a} was probably meant to be a column of the inputs, but holds values of several "
                        "columns.",
                        fix="x.transpose(1, 2)  # not view or reshape",
                        severity="warning",
                        evidence={"shape": list(values.shape), "view": [size, b, a]},
                    )
        return None

    @check
    def from_images(self, images: SwappedChannels) -> Finding:
        """Report channels-first images that a convolution reads as channels-last."""
        _, channels, side, _ = images.shape
        return self.found(
            f"The images have shape {images.shape}, with channels first. The convolution {images.layer} expects "
            f"channels last, so it sees {channels} by {side} pixels with {side} channels. It slides over the "
            f"{channels} channel{'s' * (channels > 1)} and one spatial axis, and treats the other spatial axis "
            "as channels.",
            fix={
                "keras": (
                    f"x = x.transpose(0, 2, 3, 1)  # ({side}, {side}, {channels}); a reshape would mix the pixels",
                    'if the device supports it, set data_format="channels_first" in every convolution and pooling '
                    "layer",
                )
            },
            severity="warning",
            evidence={"layer": images.layer, "shape": list(images.shape)},
        )

    @check
    def from_pixels(self, batch: BatchFacts) -> Finding | None:
        """Look for colour images that were reshaped instead of transposed."""
        images = {name: values for name, values in batch.inputs.items() if values.ndim == 4}
        if not images:
            raise NotApplicable("needs a batch of images")
        for values in images.values():
            if (found := put_back(values)) is None:
                continue
            first, before, after = found
            sides = values.shape[2:] if first else values.shape[1:3]
            memory = (*sides, CHANNELS) if first else (CHANNELS, *sides)
            made, of_batch = ("(2, 0, 1)", "(0, 3, 1, 2)") if first else ("(1, 2, 0)", "(0, 2, 3, 1)")
            return self.found(
                f"The images have shape {values.shape}, but the difference between neighbouring pixels is "
                f"{before:.0%} of that between random pixels. If the same values are read as shape {memory}, it "
                f"is only {after:.0%}, as in a real image. So a reshape or view was meant to move the channels, "
                "but neither moves axes: each channel now holds a third of the image, with the three colours side "
                "by side.",
                fix={
                    "torch": (
                        f"image.permute{made}  # not reshape or view",
                        f"x.permute{of_batch}  # for a batch",
                    ),
                    "keras": (f"image.transpose{made}  # not reshape", f"x.transpose{of_batch}  # for a batch"),
                },
                severity="warning",
                evidence={"shape": list(values.shape), "neighbours": before, "neighbours_put_back": after},
            )
        return None

    @check
    def from_series(self, batch: BatchFacts) -> Finding | None:
        """Look for signals whose time and channels were exchanged by a reshape."""
        series = {name: values for name, values in batch.inputs.items() if values.ndim == 3}
        if not series:
            raise NotApplicable("needs a batch of time series")
        for values in series.values():
            if (found := reshaped_series(values)) is None:
                continue
            a, b = values.shape[1:]
            how = (
                f"the mean squared difference between neighbouring values is {found.calm:.0%} of that between "
                f"random values, even where a row of {b} ends, but {found.other:.0%} after every {a} values, "
                "where a channel ends"
                if found.time_last
                else f"the mean squared difference between values {a} places apart is {found.calm:.0%} of that "
                f"between random values, but between neighbours along either axis it is {found.other:.0%}"
            )
            kept = "successive time steps of one channel" if found.time_last else "several channels and time steps"
            return self.found(
                f"The inputs have shape {values.shape}, but in memory they form smooth signals of shape "
                f"({b}, {a}): {how}. So a reshape or view was meant to swap time and channels, but neither moves "
                f"axes: each row of {b} holds {kept}.",
                fix={
                    "torch": ("x.transpose(1, 2)  # not reshape or view",),
                    "keras": ("x.transpose(0, 2, 1)  # not reshape",),
                },
                severity="warning",
                evidence={"shape": list(values.shape), "apart": found.other, "apart_put_back": found.calm},
            )
        return None

    @check
    def from_arrays(self, written: WrittenPatterns, batch: BatchFacts) -> Finding | None:
        """Report an array that the model gets and that was reshaped from one with its axes in another order."""
        if not written.reshaped:
            raise NotApplicable("needs an array that was reshaped from another one")
        given = {values.shape[1:] for values in batch.inputs.values()}
        for one in written.reshaped:
            (before, after), (shape, made) = one.names, one.shapes
            if made[1:] not in given:
                continue
            order = _permutation(shape, made)
            return self.found(
                f"`{after}` has shape {made} and `{before}` has shape {shape}, but both hold the same numbers in "
                "the same order. A reshape does not move axes, so the values of one position are spread over "
                f"several positions, and the model trains on scrambled rows of shape {made[1:]}.",
                fix={
                    "torch": (
                        f"{after} = {before}.transpose{order}",
                        f"{after} = {before}.permute{order}  # if {before} is a tensor",
                    ),
                    "keras": (f"{after} = {before}.transpose{order}",),
                },
                severity="warning",
                evidence={"names": list(one.names), "shape": list(shape), "reshaped": list(made)},
                where=one.where,
            )
        return None

    @check
    def from_calls(self, calls: LossCalls) -> Finding | None:
        """Report scores (a, b, classes) that are compared with labels (b, a)."""
        return first_found(calls.calls, self._flattened)

    def _flattened(self, call: LossCall) -> Finding | None:
        shapes = [None if given is None else given.unflattened for given in (call.prediction, call.target)]
        match shapes:
            case [(first, second, classes), (_, _) as labels] if call.contract.targets == "classes":
                pass
            case _:
                raise NotApplicable
        scores = (first, second, classes)
        if first == second or labels != (second, first):
            return None
        return self.found(
            f"The scores have shape {scores}, the labels have shape {labels}, and both were flattened for the "
            f"loss. Both hold {first * second:,} positions, but in different orders: most scores are compared "
            "with labels of other positions, often in other examples.",
            fix=(
                f"loss_fn(scores.transpose(0, 1).reshape(-1, {classes}), labels.reshape(-1))",
                "set batch_first=True in each recurrent layer",
            ),
            evidence={"scores": list(scores), "labels": list(labels)},
        )


def _permutation(shape: tuple[int, ...], made: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes that turn one shape into the other; the first stays in its place."""
    left, order = list(range(1, len(shape))), [0]
    for size in made[1:]:
        axis = next(axis for axis in left if shape[axis] == size)
        left.remove(axis)
        order.append(axis)
    return tuple(order)


def _messages(graph: LossGraph, index: int) -> RowsRead | None:
    """Return the rows that an operation looks up, if they are added to rows of a tensor of as many."""
    rows = graph.nodes[index].rows

    def adds(reader: Node) -> bool:
        return reader.operation in ADDED_BY_NUMBER and _length(reader) == (rows and rows.there)

    def keeps(reader: Node) -> bool:
        return _length(reader) == (rows and rows.read)

    return rows if rows is not None and graph.leads_to(index, adds, keeps) else None


def _length(node: Node) -> int | None:
    return node.shape[0] if node.shape else None


def _is_scrambled(graph: LossGraph, index: int) -> bool:
    """Return whether a view puts an axis last, or two axes in the other order, and leaves all numbers in place.

    Its rows must then be read as rows: by a softmax, a layer with weights, a product of matrices.
    """
    view = graph.nodes[index]
    ((given, operand),) = view.trained
    shape, made = known_sizes(operand.shape), known_sizes(view.shape)
    if not 3 <= len(shape) <= 5 or not made or shape[0] == 1:
        return False
    source = graph.nodes[graph.source(given, EACH, alone=False)]
    moves = source.operation == "Convolution" and source.shape == shape and _puts_channels_last(shape, made)
    if not moves and (not _swaps(shape, made) or _unflattens(source, shape)):
        return False

    def keeps_rows(reader: Node) -> bool:
        return reader.operation in KEEP_ROWS and (reader.shape or (None,))[-1] == made[-1]

    return graph.leads_to(index, lambda reader: reader.operation in BY_ROWS, keeps_rows)


def _puts_channels_last(shape: tuple[int, ...], made: tuple[int, ...]) -> bool:
    """Return whether (B, C, …) becomes (…, C), where the last C numbers are of several places of one channel."""
    size, channels, space = shape[0], shape[1], shape[2:]
    places = math.prod(space)
    if channels < 2 or places < 2 or channels in {math.prod(space[start:]) for start in range(len(space))}:
        return False
    return made in ((size * places, channels), (size, places, channels), (size, *space, channels))


def _swaps(shape: tuple[int, ...], made: tuple[int, ...]) -> bool:
    """Return whether (B, a, b) becomes (B, b, a), and cannot group neighbours on purpose, as a = 2b may."""
    if len(shape) != 3 or made != (shape[0], shape[2], shape[1]):
        return False
    short, long = sorted(shape[1:])
    return long % short != 0


def _unflattens(view: Node, shape: tuple[int, ...]) -> bool:
    """Return whether these axes were made of one, (B, a * b), so that either order may be meant."""
    return view.operation == "View" and view.operands[0].shape == (shape[0], math.prod(shape[1:]))
