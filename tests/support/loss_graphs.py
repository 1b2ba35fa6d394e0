"""Writes graphs of losses by hand, as rules read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from diagnostics.facts.loss_graph import LEAF, CustomBackward, LossGraph, Node, Operand, RowsRead


@dataclass(eq=False)
class Step:
    """An operation and what it reads: other steps, or constants."""

    operation: str
    shape: tuple[int | None, ...]
    reads: tuple[Step | Operand, ...] = ()
    backward: CustomBackward | None = None
    rows: RowsRead | None = None
    lengths: tuple[float, float] | None = None  # of its vectors, where a product reads it


def step(operation, shape, *reads, **known):
    return Step(operation, shape, reads, **known)


def leaf(*shape):
    return Step(LEAF, shape)


def constant(*shape, **known):
    return Operand(shape=shape, **known)


def graph_of(loss: Step, **fields: Any) -> LossGraph:
    """Return the graph of a loss; a step that is read twice is one node."""
    steps = [loss]
    for one in steps:
        steps += [read for read in one.reads if isinstance(read, Step) and read not in steps]
    places = {one: index for index, one in enumerate(steps)}

    def operand(read: Step | Operand) -> Operand:
        return Operand(places[read], read.shape, lengths=read.lengths) if isinstance(read, Step) else read

    nodes = (
        Node(one.operation, one.shape, tuple(map(operand, one.reads)), one.backward, one.rows) for one in steps
    )
    return LossGraph(tuple(nodes), **fields)
