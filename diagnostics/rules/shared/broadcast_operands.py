"""Finds a column and a row that the graph of a loss broadcasts to a square matrix."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from diagnostics.facts.loss_graph import LEAF, LossGraph, Node, Operand, Shape

DIFFERENCES = ("Sub", "SquaredDifference")
LOSSES = ("MseLoss", "SmoothL1Loss", "HuberLoss")
LEAST = 3  # rows: of a single one, or a pair, shapes may agree by chance
LEAST_PRODUCT = 8  # rows: as few may be quantiles, or levels, by which each prediction is multiplied on purpose
SCALED = ("Mul", "Div")
PASSED_ON = ("Neg", "Add", "Sub", "Minimum", "Maximum", *SCALED)
"""Operations between a product and its mean, as in the clipped objective of PPO."""

BETWEEN = (
    *("Abs", "Add", "Cast", "Div", "Identity", "Maximum", "Mean", "Minimum", "Mul", "Neg", "Pow", "Sqrt"),
    *("Square", "Sum", "Where"),
)
"""Operations between a traced difference and the loss: each keeps the numbers apart, or adds them up."""


def difference(graph: LossGraph) -> tuple[Shape, Shape] | None:
    """Return the shapes of a prediction and a target that a loss subtracts from each other, if it makes a square.

    The prediction is one that was selected from several, as the value of an action; the output of a linear layer,
    if the mean of the squares is taken of all differences; or anything that has one value per example where the
    loader gave a target of the other form: no loss that pairs all examples on purpose begins with such a target.
    The target is a constant: an argument of a traced step, or what the loader gave.
    """
    near = graph.below(0, BETWEEN) if graph.traced and graph.nodes else ()
    for node, given, prediction in _stretches(graph):
        operation, target = graph.nodes[given].operation, None
        if operation == "Gather" or (operation == "Addmm" and _is_mean_square(graph, node)):
            target = prediction[:1]
        elif node in near:
            target = next((one.shape for one in graph.nodes[node].operands if one.is_argument), None)
        else:
            target = graph.target
        if target is not None and _are_crossed(prediction, target):
            return prediction, target
    return None


def columns_of_all(graph: LossGraph) -> tuple[Shape, Shape] | None:
    """Return the shapes of scores, and of targets that a loss compares with a square that it looked up in them.

    Each row of the scores has a column of its own, an argument of the traced step, such as an action. The lookup
    gives each row the columns of all rows.
    """
    for index in sorted(graph.below(0, BETWEEN)) if graph.traced and graph.nodes else ():
        node = graph.nodes[index]
        if node.operation not in DIFFERENCES or len(node.trained) != 1 or len(node.constants) != 1:
            continue
        lookup, target = graph.nodes[node.trained[0][0]], node.constants[0].shape
        scores, columns = lookup.operands[:2] if lookup.operation == "GatherV2" else (Operand(), Operand())
        rows = _rows(target)
        if not columns.is_argument or not rows == target == columns.shape or lookup.shape != rows * 2:
            continue
        if scores.shape is None or len(scores.shape) != 2 or scores.shape[:1] != rows or scores.shape[1:] == rows:
            continue
        if rows[0] is None or rows[0] >= LEAST:
            return scores.shape, rows
    return None


def product(graph: LossGraph) -> tuple[Shape, Shape] | None:
    """Return the shapes of predictions and constants that a loss multiplies to a square and then adds up."""
    for index, node in enumerate(graph.nodes):
        if node.operation != "Mul" or len(node.trained) != 1 or len(node.constants) != 1:
            continue
        ((given, values),), (numbers,) = node.trained, node.constants
        if graph.nodes[given].operation == LEAF or not _are_crossed(values.shape, numbers.shape):
            continue
        rows = _rows(values.shape)[0]
        if rows is None or rows < LEAST_PRODUCT or numbers.rises is not False:
            continue  # numbers that rise are levels, as those of quantiles
        if graph.leads_to(index, lambda reader: reader.is_whole, functools.partial(_passes_on, square=node.shape)):
            return values.shape or (), numbers.shape or ()
    return None


def _stretches(graph: LossGraph) -> Iterator[tuple[int, int, Shape]]:
    """Yield each difference with a constant that makes a square, the node of its operand, and that one's shape."""
    for index, node in enumerate(graph.nodes):
        made = node
        if node.operation in LOSSES and (expanded := node.operands[0].node) is not None:
            made = graph.nodes[expanded]
        if made.operation not in (DIFFERENCES if made is node else ("Expand",)) or len(made.trained) != 1:
            continue
        ((given, operand),) = made.trained
        rows = _rows(operand.shape)
        if rows and made.shape == rows * 2 and (rows[0] is None or rows[0] >= LEAST):
            yield index, given, operand.shape or ()


def _rows(shape: Shape | None) -> Shape:
    """Return the first size of a vector, (n,) or (n, 1), as a shape; empty if it is not one."""
    return shape[:1] if shape and shape in (shape[:1], (shape[0], 1)) else ()


def _are_crossed(one: Shape | None, other: Shape | None) -> bool:
    """Return whether one is (n, 1), and the other (n,)."""
    return bool(_rows(one)) and _rows(one) == _rows(other) and one != other


def _passes_on(reader: Node, square: Shape | None) -> bool:
    """Return whether an operation keeps all pairs of a square, and scales them alike, if it scales them."""
    if reader.operation not in PASSED_ON or reader.shape != square:
        return False
    factors = [operand.shape for operand in reader.constants]
    return reader.operation not in SCALED or any(shape is not None and set(shape) <= {1} for shape in factors)


def _is_mean_square(graph: LossGraph, difference: int) -> bool:
    """Return whether a difference is squared and its mean taken, and nothing comes between."""
    squares = [one for one in graph.readers.get(difference, ()) if graph.nodes[one].operation in ("Pow", "Mul")]
    means = (graph.nodes[mean] for one in squares for mean in graph.readers.get(one, ()))
    return any(mean.operation == "Mean" and mean.is_whole for mean in means)
