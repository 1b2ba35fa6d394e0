"""Reads in the graph of a loss whether a column and a row were subtracted from each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from diagnostics.facts.pipeline import TracedDifference

DIFFERENCES = ("SubBackward0", "RsubBackward0", "RsubBackward1")
LEAST = 3  # rows: of a single one, or a pair, shapes may agree by chance

Shape = tuple[int, ...]


def stretched_operands(nodes: Iterable[Any]) -> tuple[Shape, ...]:
    """Return the shapes of what was stretched to a square, (n, 1) or (n,), by a difference with a constant."""
    return tuple(dict.fromkeys(_stretched(nodes)))


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
    for node in nodes:
        if type(node).__name__ not in DIFFERENCES:
            continue
        own = [(given, place) for given, place in node.next_functions if given is not None]
        if len(own) != 1:
            continue
        ((given, place),) = own
        before, after = _shape(given, place), _shape(node, 0)
        if before is not None and before in ((before[0], 1), (before[0],)) and after == (before[0], before[0]):
            yield before


def _shape(node: Any, place: int) -> Shape | None:
    """Return the shape of what a node computed in the forward pass; None of a number."""
    metadata = node._input_metadata
    shape = tuple(int(size) for size in metadata[place].shape) if place < len(metadata) else ()
    return shape or None
