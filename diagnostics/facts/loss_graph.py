"""The operations that computed a loss, and the parameters that it depends on: no framework, and no tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from typing import ClassVar, NamedTuple

from diagnostics.facts.array import Array
from diagnostics.facts.frozen import frozen

Shape = tuple[int | None, ...]

LEAF = "Leaf"
"""The operation of a node that stands for a parameter, or an input that requires a gradient."""

LONGEST = 32  # operations that a search for readers follows
BEGINNING = 1024  # numbers of a constant that are kept
MOST_ROWS = 16  # that are counted one by one, of those that an operation read


class Operand(NamedTuple):
    """A tensor that an operation read.

    Attributes:
        node: index of the node that computed it; None for a constant, which depends on no parameter.
        shape: None if not known; a size is None if it is open while a step is traced.
        value: of a constant that is a single number, if the operation saved it.
        rises: whether each number of a constant vector is larger than the one before; None if not known.
        lengths: of the shortest and the longest of the vectors that a matrix product multiplies; None if they
            were not measured.
        is_argument: whether a constant depends on an argument of the traced step.
        beginning: the first numbers of a constant that a layer, or the smaller or larger of two tensors, reads;
            float32, as `numbers_at_start` makes them.
    """

    node: int | None = None
    shape: Shape | None = None
    value: float | None = None
    rises: bool | None = None
    lengths: tuple[float, float] | None = None
    is_argument: bool = False
    beginning: bytes = b""


class CustomBackward(NamedTuple):
    """The code of the `backward` of a `torch.autograd.Function` that the script defines.

    Attributes:
        function: name of its class.
        context: name of its first parameter.
        gradients: names of the other parameters.
        reads: names of variables, globals and attributes in its code.
    """

    function: str
    context: str
    gradients: tuple[str, ...]
    reads: frozenset[str]


class RowsRead(NamedTuple):
    """The rows of a tensor that an operation looked up by their numbers.

    Attributes:
        there: rows of the tensor.
        read: rows that were looked up, each counted as often as it was.
        times: by number of a row, how often it was read; None if these are more than `MOST_ROWS` rows.
    """

    there: int
    read: int
    times: Mapping[int, int] | None


class Node(NamedTuple):
    """An operation with a gradient.

    Attributes:
        operation: as autograd calls it, without the suffix: ``Mul``, ``LogSoftmax``, …, or `LEAF`.
        shape: of its result, the first if there are several; None if not known.
        operands: in the order of its arguments.
        backward: of an operation that the script defines; None for others.
        rows: that it looked up along the first axis of its operand; None of others, of a mask of booleans, and if
            the numbers are not known.
    """

    operation: str
    shape: Shape | None
    operands: tuple[Operand, ...] = ()
    backward: CustomBackward | None = None
    rows: RowsRead | None = None

    @property
    def trained(self) -> list[tuple[int, Operand]]:
        """The operands that depend on a parameter, each with the index of its node."""
        return [(operand.node, operand) for operand in self.operands if operand.node is not None]

    @property
    def constants(self) -> list[Operand]:
        """The operands that depend on no parameter."""
        return [operand for operand in self.operands if operand.node is None]

    @property
    def is_whole(self) -> bool:
        """Whether it is the sum or the mean of all numbers of a tensor."""
        return self.operation in ("Sum", "Mean") and self.shape == ()


@frozen
class LossGraph:
    """The operations between the parameters and a loss, as autograd or a traced step of TensorFlow holds them.

    Attributes:
        nodes: the one that computed the loss first, those next to it before others.
        prediction: the shape of what the model returned; None if not known.
        target: the shape of the targets of the batch; None if not known.
        traced: whether TensorFlow traced it, and it is not of a step that was run.
        pairs: integers (n, 2) each, rows of one tensor that an operation compares: those of an embedding of the
            nodes of a graph, at both ends of its edges.
    """

    described: ClassVar[str] = "the graph of the first loss"

    nodes: tuple[Node, ...]
    prediction: Shape | None = None
    target: Shape | None = None
    traced: bool = False
    pairs: tuple[Array, ...] = ()

    @functools.cached_property
    def readers(self) -> dict[int, list[int]]:
        """The nodes that read the result of a node."""
        found: dict[int, list[int]] = {}
        for index, node in enumerate(self.nodes):
            for operand, _ in node.trained:
                found.setdefault(operand, []).append(index)
        return found

    def chain(self, index: int, through: Collection[str], alone: bool = True) -> Iterator[int]:
        """Yield a node and those before it, through operations that are to be looked through.

        Args:
            index: of the first node.
            through: names of operations; the last node is of another, or a leaf.
            alone: stop at an operation with several trained operands. Otherwise its first one is followed.
        """
        while True:
            yield index
            trained = self.nodes[index].trained
            if self.nodes[index].operation not in through or not trained or (alone and len(trained) > 1):
                return
            index = trained[0][0]

    def source(self, index: int, through: Collection[str], alone: bool = True) -> int:
        """Return the last node of a `chain`."""
        *_, last = self.chain(index, through, alone)
        return last

    def below(self, index: int, through: Collection[str] | None = None) -> set[int]:
        """Return a node and all that it depends on; with `through`, only past operations of these names."""
        waiting, seen = [index], set[int]()
        while waiting:
            if (one := waiting.pop()) not in seen:
                seen.add(one)
                if through is None or self.nodes[one].operation in through:
                    waiting += [operand for operand, _ in self.nodes[one].trained]
        return seen

    def leads_to(self, index: int, end: Callable[[Node], bool], through: Callable[[Node], bool]) -> bool:
        """Return whether a result is read by an operation at which to end, past few others."""
        waiting, seen = [index], 0
        while waiting and seen < LONGEST:
            one, seen = waiting.pop(), seen + 1
            for reader in self.readers.get(one, ()):
                if end(self.nodes[reader]):
                    return True
                if through(self.nodes[reader]):
                    waiting.append(reader)
        return False


def rows_read(numbers: Array, there: int) -> RowsRead:
    """Count how often each row is read; negative numbers count from the end."""
    import numpy as np  # not needed to explain a traceback

    rows, times = np.unique(np.where(numbers < 0, numbers + there, numbers), return_counts=True)
    few = len(rows) <= MOST_ROWS
    return RowsRead(there, numbers.size, dict(zip(rows.tolist(), times.tolist(), strict=True)) if few else None)


def numbers_at_start(values: Array) -> bytes:
    """Return the first numbers of an array, in the order of its axes."""
    import numpy as np  # not needed to explain a traceback

    few = values[: 1 + BEGINNING * len(values) // max(values.size, 1)]
    return np.ascontiguousarray(few, np.float32).reshape(-1)[:BEGINNING].tobytes()


def known_sizes(shape: Shape | None) -> tuple[int, ...]:
    """Return the sizes of a shape; none of them if one is open."""
    sizes = tuple(size for size in shape or () if size is not None)
    return sizes if shape is not None and len(sizes) == len(shape) else ()


@frozen
class LeafFacts:
    """Parameters that the first loss depends on, that require a gradient, and that no optimizer holds.

    Those that the model registers are left out: `OptimizerFacts.missing` lists them.

    Attributes:
        unregistered: sizes, in scalars, by path, such as ``layers[0].weight``: of modules and parameters that
            the model keeps in a list, tuple or dict of Python's, where `parameters()` does not find them.
        other_models: scalars by class name of modules that give the model its input, are in training mode, and
            whose weights are as they were initialised.
        heads: the same of modules that take the model's output, such as a loss with weights of its own.
        num_trained: scalars that the loss depends on and that an optimizer holds.
        vanished: scalars, in matrices, by class name of layers that the model makes within its forward pass and
            that exist no more when it is over.
        untracked: scalars by path of variables that a layer of Keras keeps where Keras does not find them, and
            that are as they were before the training.
    """

    described: ClassVar[str] = "the parameters that the loss depends on"

    unregistered: Mapping[str, int]
    other_models: Mapping[str, int]
    num_trained: int
    vanished: Mapping[str, int] = field(default_factory=dict)
    heads: Mapping[str, int] = field(default_factory=dict)
    untracked: Mapping[str, int] = field(default_factory=dict)
