"""A model, of any framework, that can be asked again about any examples of one batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.dependence import REFUSED, Mixer
from diagnostics.facts.where import Where

NOISE = 0.05  # added to each weight, times its size: opens a gate that starts at zero
NO_TIME = "there was no time left for this check"
NO_BATCH_NORM = "the model has no batch norm with running statistics"

Inputs = Mapping[str, Array]
StepReader = Literal["recurrent", "attention"]
T = TypeVar("T")


class OutOfTime(Exception):
    """The time for these measurements is over."""


class Unclear(Exception):
    """This cannot be measured; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What a model returned.

    Attributes:
        main: the prediction, float32.
        others: further tensors of floating point, float32.
    """

    main: Array
    others: Sequence[Array] = field(default_factory=list)

    def change(self, other: Answer) -> float:
        """Return the largest absolute difference of any two values; infinity where the shapes differ."""
        one, two = (self.main, *self.others), (other.main, *other.others)
        if [part.shape for part in one] != [part.shape for part in two]:
            return float("inf")
        return max(float(np.abs(a - b).max()) for a, b in zip(one, two, strict=True) if a.size)


@dataclass(frozen=True)
class Operation:
    """One recorded operation.

    Attributes:
        kind: see `MixingFacts`.
        name: of the layer or function.
        shape: of its input.
        axis: along which it works; of a reshape -1.
        result: the shape that a reshape makes; empty otherwise.
        rows: for a reshape, the example of each number of its input, in the shape of the input; None where that is
            not known.
        where: the line that calls it.
    """

    kind: Mixer
    name: str
    shape: tuple[int, ...]
    axis: int
    result: tuple[int, ...] = ()
    rows: Array | None = None
    where: Where | None = None


def rows_of_numbers(shape: tuple[int, ...], size: int) -> Array | None:
    """Return the example of each number of a tensor, for `size` examples; None if no single axis counts them."""
    if shape.count(size) != 1:
        return None
    across = [size if length == size else 1 for length in shape]
    return np.broadcast_to(np.arange(size).reshape(across), shape)


@dataclass(frozen=True)
class Layer:
    """A layer with a matrix of weights.

    Attributes:
        shown: its name and class.
        outputs: how many it has.
        key: what `Subject.scaled` knows it by.
    """

    shown: str
    outputs: int
    key: Any


class Subject(ABC):
    """A model and one batch of it.

    Attributes:
        inputs: of the batch, by name.
        target: of the loss; None if not known.
        ignore_index: the label that the loss leaves out; None if it leaves out none.
        tested: the names of inputs that are told apart by the model, and that are no targets.
        axes: of the inputs that may count the examples.
        batch_first: whether the first is known to do so.
        predicts_tokens: whether the loss is a cross entropy and nothing else.
        fills_in_tokens: whether the model is known to predict the tokens that are masked in its input.
        shows_softmax: whether `operations_seen` lists each softmax; if not, it is told from its result.
        seeds: of runs in training mode, where an input may be used now and then, as in teacher forcing.
    """

    inputs: Inputs
    target: Array | None
    ignore_index: int | None
    tested: frozenset[str]
    axes: tuple[int, ...] = (0, 1)
    batch_first: bool
    predicts_tokens: bool
    fills_in_tokens: bool = False
    shows_softmax = True
    seeds: tuple[int, ...] = (0, 1, 2)

    @abstractmethod
    def ask(self, inputs: Inputs, *, training: bool = False, seed: int = 0) -> Answer:
        """Run the model on these inputs.

        Raises:
            OutOfTime: the time is over.
        """

    @abstractmethod
    def operations_seen(self, size: int) -> AbstractContextManager[list[Operation]]:
        """List the operations within that may combine examples, of which there are `size`; complete on leaving."""

    @abstractmethod
    def summaries_seen(self, rows: int, length: int) -> AbstractContextManager[list[str]]:
        """List the layers within that return one vector for each text, or begin from a given state."""

    @abstractmethod
    def reads_steps(self, inputs: Inputs, length: int) -> StepReader | None:
        """Say what reads so many steps of a sequence: recurrent layers, all of them forward, or else attention."""

    @abstractmethod
    def restored(self) -> AbstractContextManager[None]:
        """Put the model back to what it was on leaving."""

    @abstractmethod
    def add_noise(self) -> None:
        """Change each weight by `NOISE` of the size of its kind; to be called within `restored`."""

    @abstractmethod
    def layers(self, inputs: Inputs) -> list[Layer]:
        """Return the layers with a matrix of weights, in the order in which they run.

        Raises:
            Unclear: one runs several times, or there are too many.
        """

    @abstractmethod
    def scaled(self, layer: Layer, factor: float) -> AbstractContextManager[None]:
        """Multiply the matrix of a layer within."""

    @abstractmethod
    def own_statistics(self) -> AbstractContextManager[float]:
        """Let batch norm take the statistics of the whole batch within, in evaluation mode.

        Yields over how many steps its running statistics are averaged: 1 / the weight of the latest batch, of
        several layers the most; infinite for a mean of all.

        Raises:
            Unclear: the model has no batch norm with running statistics.
        """

    def mixes_by_design(self) -> str | None:
        """Say why the answer to an example is to depend on the others; None if it is not."""
        return None


def by_part(why_not: dict[str, str], name: str, work: Callable[..., T], *arguments: Any) -> T | None:
    """Do one part's work; None if it cannot be done, with the reason in `why_not`."""
    try:
        return work(*arguments)
    except Unclear as reason:
        why_not[name] = str(reason)
    except OutOfTime:
        why_not[name] = NO_TIME
    except Exception as error:  # of the model, which may not take such a batch
        why_not[name] = f"{REFUSED} {type(error).__name__}"
    return None
