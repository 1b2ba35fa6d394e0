"""Reads the autograd graph of a loss before the backward pass, which frees it."""

from __future__ import annotations

import dataclasses
import dis
import functools
import inspect
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from types import CodeType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction

from diagnostics.collectors.pytorch.saved_tensors import saved
from diagnostics.facts.array import Array
from diagnostics.facts.loss_graph import (
    BEGINNING,
    LEAF,
    CustomBackward,
    LossGraph,
    Node,
    Operand,
    Shape,
    numbers_at_start,
    rows_read,
)

MOST_NODES = 50_000  # of a graph that are walked: some 100 ms
LARGEST = 2**22  # numbers of a tensor that is read
MOST_PAIRS, PAIRED = 2**17, 8  # rows of one lookup that are kept; pairs of lookups
LAYER_INPUTS = {
    "Convolution": ("input", 0),
    "MkldnnRnnLayer": ("input", 0),
    "Addmm": ("mat1", 1),
    "Mm": ("self", 0),
}
"""By operation of a layer: what its input is saved as, and its place among the operands."""

PRODUCTS = 8  # matrix products next to the loss whose vectors are measured
SYNONYMS = {
    "AccumulateGrad": LEAF,
    "Rsub": "Sub",
    "Amax": "Max",
    "UnsafeView": "View",
    "ReshapeAlias": "View",
    "ToCopy": "Cast",
}
_CONSTANT = Operand()
_READS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "DELETE_FAST")


def graph_nodes(*results: Any) -> list[Any]:
    """Return the nodes of the graph of a loss, or of several tensors or nodes, those next to it first.

    Those of parameters have a ``variable``.
    """
    waiting, seen = deque(getattr(result, "grad_fn", result) for result in results), dict[Any, None]()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.popleft()
        if node is not None and node not in seen:
            seen[node] = None
            waiting += [following for following, _ in node.next_functions]
    return list(seen)


def loss_graph(nodes: Iterable[Any]) -> LossGraph:
    """Describe the nodes of a graph, from `graph_nodes`.

    What the script saved with hooks of its own is not read, and the code of its operations is not run.
    """
    places = {node: index for index, node in enumerate(nodes)}
    shapes = [*map(_shapes, places), ()]  # the last is for all nodes that were not walked
    measured = [node for node in places if type(node).__name__ == "MmBackward0"][:PRODUCTS]
    read, numbers = [], dict[int, Array]()
    with torch.no_grad(), torch._C.DisableTorchFunction():
        for node, index in places.items():
            operands = [_CONSTANT] * len(node.next_functions)
            for side, (given, place) in enumerate(node.next_functions):
                if given is not None:
                    before = places.get(given, len(places))
                    operands[side] = Operand(before, _shape(shapes[before], place))
            read.append(_read(node, _shape(shapes[index], 0), operands, node in measured))
            looked_up = _looked_up(node, _operation(type(node).__name__))
            if looked_up is not None and len(looked_up) <= MOST_PAIRS:
                numbers[index] = looked_up
    if len(read) >= MOST_NODES:
        read.append(Node("Unread", None))
    return LossGraph(tuple(read), pairs=tuple(islice(_pairs(read, numbers), PAIRED)))


def _pairs(nodes: list[Node], numbers: dict[int, Array]) -> Iterator[Array]:
    """Yield the numbers (n, 2) of the rows of one tensor that an operation compares."""
    for node in nodes:
        ends = [one.node for one in node.operands if one.node is not None]
        if len(ends) != 2 or ends[0] == ends[1] or not all(end in numbers for end in ends):
            continue
        one, other = (nodes[end].operands[0].node for end in ends)
        if one == other and len(numbers[ends[0]]) == len(numbers[ends[1]]):
            yield np.stack([numbers[end] for end in ends], axis=1)


def with_shapes(graph: LossGraph, prediction: Any, target: Any) -> LossGraph:
    """Return a graph with the shapes of what the model returned and of the target, if these are tensors."""
    given = (prediction, target)
    shapes = [tuple(one.shape) if isinstance(one, Tensor) and not one.is_nested else None for one in given]
    return dataclasses.replace(graph, prediction=shapes[0], target=shapes[1])


def _read(node: Any, shape: Shape | None, operands: list[Operand], measured: bool) -> Node:
    if isinstance(node, BackwardCFunction):
        return Node("Custom", shape, tuple(operands), _custom_backward(node))
    name = _operation(type(node).__name__)
    if name in ("Mul", "Div") and sum(operand.node is None for operand in operands) == 1:
        side = 0 if operands[0].node is None else 1
        operands[side] = _constant(saved(node, ("self", "other")[side]))
    if measured:
        factors = saved(node, "self"), saved(node, "mat2")
        operands = [one._replace(lengths=_lengths(factors[side], 1 - side)) for side, one in enumerate(operands)]
    layer = LAYER_INPUTS.get(name)
    if name in ("Minimum", "Maximum"):
        layer = ("self", 0) if operands[0].node is None else ("other", 1)
    if layer is not None and operands[layer[1]].node is None:
        operands[layer[1]] = _numbers_read(operands[layer[1]], saved(node, layer[0]), name == "MkldnnRnnLayer")
    looked_up = _looked_up(node, name) if name in ("Index", "IndexSelect") else None
    rows = None if looked_up is None else rows_read(looked_up, saved(node, "self_sym_sizes")[0])
    return Node(name, shape, tuple(operands), rows=rows)


def _looked_up(node: Any, name: str) -> Array | None:
    """Return the numbers (n,) of the rows that are looked up with one tensor of integers along the first axis."""
    if name not in ("Index", "IndexSelect", "Embedding"):
        return None
    sizes = (0,) if name == "Embedding" else saved(node, "self_sym_sizes")
    if name == "Embedding":
        index: Any = saved(node, "indices")
    elif name == "Index":
        indices = saved(node, "indices")
        index = indices[0] if isinstance(indices, tuple) and len(indices) == 1 else None
    else:
        index = saved(node, "index") if saved(node, "dim") == 0 else None
    if not _is_readable(index) or index.dtype not in (torch.int32, torch.int64) or not sizes:
        return None
    if not isinstance(sizes[0], int) or not 0 < index.numel() <= LARGEST:
        return None
    looked_up: Array = index.cpu().numpy().reshape(-1)
    return looked_up


@functools.cache
def _operation(name: str) -> str:
    """Return the name of an operation in the terms of `LossGraph`."""
    name = re.sub(r"Backward\d*$", "", name)
    return SYNONYMS.get(name, name)


def _shapes(node: Any) -> tuple[Shape | None, ...]:
    """Return the shapes of what a node computed in the forward pass; the size of a nested axis is None."""
    return tuple(
        None if getattr(one, "is_nested_tensor", False) else _sizes(one.shape) for one in node._input_metadata
    )


def _sizes(shape: Iterable[Any]) -> Shape:
    return tuple(size if isinstance(size, int) else None for size in shape)


def _shape(shapes: tuple[Shape | None, ...], place: int) -> Shape | None:
    return shapes[place] if place < len(shapes) else None


def _is_readable(tensor: Any) -> bool:
    """Return whether numbers of a tensor can be read: others may be on several devices, or have no values."""
    plain = type(tensor) in (Tensor, nn.Parameter) and tensor.layout == torch.strided
    return plain and not (tensor.is_meta or tensor.is_complex() or tensor.is_quantized)


def _constant(tensor: Any) -> Operand:
    """Describe an operand without a gradient."""
    if not _is_readable(tensor):
        return Operand()
    shape, count = tuple(tensor.shape), tensor.numel()
    if count > LARGEST:
        return Operand(shape=shape)
    if count == 1:
        return Operand(shape=shape, value=float(tensor))
    is_vector = len(shape) in (1, 2) and count == shape[0]
    rises = bool((tensor.flatten().float().diff() > 0).all()) if is_vector else None
    return Operand(shape=shape, rises=rises)


def _numbers_read(operand: Operand, tensor: Any, time_first: bool) -> Operand:
    """Describe what a layer or a comparison reads, if that depends on no parameter."""
    if not _is_readable(tensor) or tensor.dtype != torch.float32 or not tensor.numel() or not tensor.ndim:
        return operand
    rows = tensor.transpose(0, 1) if time_first else tensor
    few = rows[: 1 + BEGINNING // rows[0].numel()]  # so that little is copied from a GPU
    return operand._replace(shape=tuple(rows.shape), beginning=numbers_at_start(few.cpu().numpy()))


def _lengths(matrix: Any, axis: int) -> tuple[float, float] | None:
    """Return the lengths of the shortest and the longest vector along an axis."""
    if not _is_readable(matrix) or not 0 < matrix.numel() <= LARGEST:
        return None
    lengths = matrix.float().norm(dim=axis)
    return float(lengths.min()), float(lengths.max())


def _custom_backward(node: Any) -> CustomBackward | None:
    """Read the code of an operation of the script's, which may print or draw random numbers when it runs."""
    function = getattr(node, "_forward_cls", None)
    code = getattr(inspect.unwrap(function.backward), "__code__", None) if function is not None else None
    if function is None or code is None:
        return None
    several = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    context, *gradients = code.co_varnames[:several] or ("",)
    return CustomBackward(function.__name__, context, tuple(gradients), _names(code))


def _names(code: CodeType) -> frozenset[str]:
    """Return the names that a function reads, with those that functions within it may read."""
    names = {*code.co_names, *code.co_freevars, *code.co_cellvars}
    for instruction in dis.get_instructions(code):
        if any(read in instruction.opname for read in _READS):  # Python 3.13 has STORE_FAST_LOAD_FAST, too
            value = instruction.argval
            names.update(value if isinstance(value, tuple) else (value,))
    return frozenset(names)
