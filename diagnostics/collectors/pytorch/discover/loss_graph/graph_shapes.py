"""Reads shapes in the graph of a loss: a column and a row subtracted from each other, axes scrambled by a view."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from diagnostics.collectors.pytorch.saved_tensors import saved
from diagnostics.facts.loss import RawOverlap, ScrambledView, StretchedProduct, TracedDifference

LOSSES = ("MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0")
DIFFERENCES = ("SubBackward0", "RsubBackward0", "RsubBackward1")
MOST_NODES = 50_000  # of a graph that are walked: some 100 ms
LONGEST = 32  # operations of an expression
LEAST = 3  # rows: of a single one, or a pair, shapes may agree by chance
LEAST_PRODUCT = 8  # rows: as few may be quantiles, or levels, by which each answer is multiplied on purpose
WITHIN = ("AddBackward0", "SubBackward0", "RsubBackward1", "MulBackward0", "MeanBackward0", "MeanBackward1")
SUMS = ("SumBackward0", "SumBackward1")
LAID_OUT = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "CloneBackward0", "SqueezeBackward1")
RAW = {"ConvolutionBackward0": 1, "AddmmBackward0": 2}
"""What computes outputs that may be negative, and which of its operands is the weight."""

RESIZED = ("UpsampleBilinear2DBackward0", "UpsampleNearest2DBackward0")

LINEAR = ("AddmmBackward0",)
CHOSEN = ("GatherBackward0",)  # one answer for each example, as the value of the action taken
VIEWS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")
EACH = (
    *("ReluBackward0", "LeakyReluBackward0", "GeluBackward0", "SiluBackward0", "EluBackward0", "TanhBackward0"),
    *("SigmoidBackward0", "AddBackward0", "MulBackward0", "NativeBatchNormBackward0", "NativeLayerNormBackward0"),
    *("CloneBackward0", "NativeDropoutBackward0"),
)
"""Operations that leave every number where it was."""

KEEP_ROWS = (*EACH, *VIEWS, "TransposeBackward0")
BY_ROWS = (
    *("LogSoftmaxBackward0", "SoftmaxBackward0", "NativeLayerNormBackward0", "ConvolutionBackward0"),
    *("AddmmBackward0", "MmBackward0", "BmmBackward0", "BaddbmmBackward0"),
    *("MkldnnRnnLayerBackward0", "CudnnRnnBackward0"),
)
"""Operations to which the last axis is one thing; a squared error of two views, both scrambled, is what it was."""

WHOLE = ("MeanBackward0", "SumBackward0")
"""Mean and sum of all numbers of a tensor."""

SCALED = ("MulBackward0", "DivBackward0")
PASSED_ON = (
    *("NegBackward0", "AddBackward0", "SubBackward0", "RsubBackward1", "MinimumBackward0", "MaximumBackward0"),
    *SCALED,
)
"""Operations between a product and its mean, as in the clipped objective of PPO."""

Shape = tuple[int, ...]


def graph_nodes(loss: Tensor) -> set[Any]:
    """Return the nodes of the graph of a loss; those of parameters have a ``variable``."""
    waiting, seen = [loss.grad_fn], set[Any]()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions]
    return seen


def stretched_operands(nodes: Iterable[Any]) -> tuple[Shape, ...]:
    """Return the shapes of what was stretched to a square, (n, 1) or (n,), by a difference with a constant."""
    return tuple(dict.fromkeys(_stretched(nodes)))


def chosen_against_row(nodes: Iterable[Any]) -> TracedDifference | None:
    """Return the difference of one answer for each example, (n, 1), and a row of n constants.

    An answer that is chosen of several, as the value of the action taken; or the output of a linear layer, as the
    value of a state, where the mean of the squares is taken of all differences.
    """
    nodes = list(nodes)
    for node, given, before in _stretches(nodes):
        if len(before) != 2 or before[0] < LEAST:
            continue
        if type(given).__name__ in CHOSEN or (type(given).__name__ in LINEAR and _is_mean_square(node, nodes)):
            return TracedDifference(before, before[:1], traced=False)
    return None


def stretched_product(nodes: Iterable[Any]) -> StretchedProduct | None:
    """Return the product of a value and a constant for each example that is a square, and then averaged."""
    nodes = list(nodes)
    for node in nodes:
        if type(node).__name__ != "MulBackward0":
            continue
        own = [(given, place) for given, place in node.next_functions if given is not None]
        if len(own) != 1 or type(own[0][0]).__name__ == "AccumulateGrad":
            continue
        values, constant = _shape(*own[0]), _constant(node)
        if values is None or constant is None or values[0] < LEAST_PRODUCT:
            continue
        column, row, shape = (values[0], 1), (values[0],), tuple(constant.shape)
        if (values, shape) not in ((row, column), (column, row)) or bool((constant.flatten().diff() > 0).all()):
            continue  # numbers that rise are levels, as those of quantiles
        if _ends_in_a_number(node, nodes):
            return StretchedProduct(values, shape)
    return None


def _constant(product: Any) -> Tensor | None:
    """Return the operand of a product, or the divisor, that has no gradient; None if it cannot be read."""
    first, *_ = product.next_functions
    constant = saved(product, "self" if first[0] is None else "other")
    return constant.detach() if isinstance(constant, Tensor) else None


def _is_scaled(node: Any) -> bool:
    """Whether all numbers are multiplied by the same, and no pair is left out by a mask."""
    if sum(given is not None for given, _ in node.next_functions) > 1:
        return False
    constant = _constant(node)
    return constant is not None and constant.numel() == 1


def _ends_in_a_number(product: Any, nodes: list[Any]) -> bool:
    """Whether all numbers of a product are summed, or averaged, at once, with little between."""
    readers: dict[Any, list[Any]] = {}
    for node in nodes:
        for given, _ in node.next_functions:
            readers.setdefault(given, []).append(node)
    waiting, seen = [product], 0
    while waiting and seen < LONGEST:
        one, seen = waiting.pop(), seen + 1
        for reader in readers.get(one, ()):
            if type(reader).__name__ in WHOLE:
                return True
            scaled = type(reader).__name__ not in SCALED or _is_scaled(reader)
            if type(reader).__name__ in PASSED_ON and scaled and _shape(reader, 0) == _shape(product, 0):
                waiting.append(reader)
    return False


def _is_mean_square(difference: Any, nodes: list[Any]) -> bool:
    """Whether a difference is squared and its mean taken, and nothing comes between."""
    readers = [node for node in nodes if any(given is difference for given, _ in node.next_functions)]
    squares = [node for node in readers if type(node).__name__ in ("PowBackward0", "MulBackward0")]
    return any(
        type(node).__name__ == "MeanBackward0" and any(given in squares for given, _ in node.next_functions)
        for node in nodes
    )


def scrambled_views(nodes: Iterable[Any]) -> tuple[ScrambledView, ...]:
    """Return the views that put an axis last, or two axes in the other order, and leave all numbers in place.

    Only those whose rows are then read as rows: by a softmax, a layer with weights, a product of matrices.
    """
    found, nodes = [], list(nodes)
    for node in nodes:
        if type(node).__name__ not in VIEWS:
            continue
        given, place = node.next_functions[0]
        shape, made = tuple(int(one) for one in saved(node, "self_sym_sizes")), _shape(node, 0)
        if given is None or made is None or not 3 <= len(shape) <= 5 or shape[0] < 2:
            continue
        source = _source(given)
        maps = type(source).__name__ == "ConvolutionBackward0" and _shape(source, place) == shape
        moves = maps and _puts_channels_last(shape, made)
        swaps = _swaps(shape, made) and not _unflattens(source, shape)
        if (moves or swaps) and _is_read_by_rows(node, made[-1], nodes):
            found.append(ScrambledView(shape, made))
    return tuple(dict.fromkeys(found))


def overlap_of_raw_outputs(nodes: Iterable[Any]) -> RawOverlap | None:
    """Return the ratio of sums of an output that may be negative: of it times a constant, and of itself."""
    for node in nodes:
        if type(node).__name__ != "DivBackward0":
            continue
        parts = [given for given, _ in node.next_functions]
        if len(parts) != 2 or None in parts:
            continue
        above, below = (dict(_summed(part)) for part in parts)
        for source, weighed in above.items():
            if weighed and below.get(source) is False and _may_be_negative(source):
                return RawOverlap(_shape(source, 0) or ())
    return None


def _may_be_negative(node: Any) -> bool:
    """Whether a layer with weights that are trained computed this; a fixed filter keeps probabilities positive."""
    while type(node).__name__ in RESIZED and node.next_functions[0][0] is not None:
        node = node.next_functions[0][0]
    place = RAW.get(type(node).__name__)
    return place is not None and len(node.next_functions) > place and node.next_functions[place][0] is not None


def _summed(node: Any) -> Iterator[tuple[Any, bool]]:
    """Yield what is summed in an expression, and whether it is multiplied before."""
    waiting, seen = [node], 0
    while waiting and seen < LONGEST:
        one, seen = waiting.pop(), seen + 1
        following = [given for given, _ in one.next_functions if given is not None]
        if type(one).__name__ in WITHIN:
            waiting += following
        elif type(one).__name__ in SUMS:
            weighed, given = False, following[0]
            while type(given).__name__ in (*LAID_OUT, "MulBackward0"):
                rest = [one for one, _ in given.next_functions if one is not None]
                if len(rest) != 1:
                    break
                weighed, given = weighed or type(given).__name__ == "MulBackward0", rest[0]
            yield given, weighed


def _puts_channels_last(shape: Shape, made: Shape) -> bool:
    """Whether (B, C, …) becomes (…, C), where the last C numbers in a row are of several places of one channel."""
    size, channels, space = shape[0], shape[1], shape[2:]
    places = math.prod(space)
    if channels < 2 or places < 2 or channels in {math.prod(space[start:]) for start in range(len(space))}:
        return False
    return made in ((size * places, channels), (size, places, channels), (size, *space, channels))


def _swaps(shape: Shape, made: Shape) -> bool:
    """Whether (B, a, b) becomes (B, b, a), and cannot be meant to put neighbours together, as a = 2b may be."""
    if len(shape) != 3 or made != (shape[0], shape[2], shape[1]):
        return False
    short, long = sorted(shape[1:])
    return long % short != 0


def _is_read_by_rows(view: Any, last: int, nodes: list[Any]) -> bool:
    """Whether an operation after this view takes numbers that are beside each other on the last axis together."""
    readers: dict[Any, list[Any]] = {}
    for node in nodes:
        for given, _ in node.next_functions:
            readers.setdefault(given, []).append(node)
    waiting, seen = [view], 0
    while waiting and seen < LONGEST:
        one, seen = waiting.pop(), seen + 1
        for reader in readers.get(one, ()):
            if type(reader).__name__ in BY_ROWS:
                return True
            if type(reader).__name__ in KEEP_ROWS and (_shape(reader, 0) or (0,))[-1] == last:
                waiting.append(reader)
    return False


def _source(node: Any) -> Any:
    """Follow operations that leave every number where it was."""
    for _ in range(len(EACH)):
        following = [one for one, _ in node.next_functions if one is not None]
        if type(node).__name__ not in EACH or not following:
            break
        node = following[0]
    return node


def _unflattens(node: Any, shape: Shape) -> bool:
    """Whether these axes were made of one, (B, a * b), so that either order may be meant."""
    if type(node).__name__ not in VIEWS:
        return False
    return tuple(int(one) for one in saved(node, "self_sym_sizes")) == (shape[0], math.prod(shape[1:]))


def difference_of(operands: Iterable[Shape], prediction: Tensor | None, target: Any) -> TracedDifference | None:
    """Return the difference of the model's own answers and of the targets of the batch, if it is one of these.

    Args:
        operands: from `stretched_operands`.
        prediction: what the model returned.
        target: of the batch, as the loader gave it.
    """
    if prediction is None or not isinstance(target, Tensor) or prediction.ndim == target.ndim:
        return None
    rows = len(prediction) if prediction.ndim else 0
    if rows < LEAST or prediction.numel() != rows or target.numel() != rows or not target.ndim:
        return None
    for shape in operands:
        if shape == tuple(prediction.shape) and len(target) == rows and target.ndim <= 2:
            return TracedDifference(shape, tuple(target.shape), traced=False)
    return None


def _stretched(nodes: Iterable[Any]) -> Iterator[Shape]:
    for _, _, before in _stretches(nodes):
        yield before


def _stretches(nodes: Iterable[Any]) -> Iterator[tuple[Any, Any, Shape]]:
    """Yield each difference with a constant that makes a square, its operand, and the shape of that."""
    for node in nodes:
        if (
            type(node).__name__ in LOSSES
            and type(expanded := node.next_functions[0][0]).__name__ == "ExpandBackward0"
        ):
            ((given, place),) = expanded.next_functions
            before, after = _shape(given, place), _shape(expanded, 0)
            if before is not None and before in ((before[0], 1), (before[0],)) and after == (before[0], before[0]):
                yield node, given, before
            continue
        if type(node).__name__ not in DIFFERENCES:
            continue
        own = [(given, place) for given, place in node.next_functions if given is not None]
        if len(own) != 1:
            continue
        ((given, place),) = own
        before, after = _shape(given, place), _shape(node, 0)
        if before is not None and before in ((before[0], 1), (before[0],)) and after == (before[0], before[0]):
            yield node, given, before


def _shape(node: Any, place: int) -> Shape | None:
    """Return the shape of what a node computed in the forward pass; None of a number."""
    metadata = node._input_metadata
    shape = tuple(int(size) for size in metadata[place].shape) if place < len(metadata) else ()
    return shape or None
