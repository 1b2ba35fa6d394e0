"""A call of a loss: the function, and copies of what it was given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, NamedTuple

from .array import Array
from .frozen import frozen
from .loss_contracts import LossContract, contract_of
from .where import Where

LARGEST = 2**20  # numbers of an argument that are copied


@frozen
class Argument:
    """A tensor that a loss was given.

    Attributes:
        values: the tensor; of a large one the first rows.
        ends: lowest and highest number of the whole tensor; None if it is empty.
        rows: how many it has; None if all of them are in `values`.
        unflattened: the shape before it was only flattened, as with `view` or `reshape`; None if it was not.
    """

    values: Array
    ends: tuple[float, float] | None
    rows: int | None = None
    unflattened: tuple[int, ...] | None = None

    @classmethod
    def of(cls, values: Array) -> Argument:
        """Keep an array, or its first rows."""
        ends = (float(values.min()), float(values.max())) if values.size else None
        rows = rows_kept(values.shape)
        return cls(values, ends) if rows is None else cls(values[:rows].copy(), ends, len(values))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole tensor."""
        return tuple(self.values.shape) if self.rows is None else (self.rows, *self.values.shape[1:])


@frozen
class LossCall:
    """One call of a loss.

    Attributes:
        function: its name, a key of `loss_contracts` if the loss is known.
        arguments: tensors and sequences of numbers, by name.
        options: flags, numbers and words, by name.
        value: what it returned, before a constant factor; NaN if that is not one number.
        made_by: the function that computed the prediction: ``softplus``, ``linear``, …; None if not known.
        whole: whether the differentiated loss is known to be this value alone, but for constant factors.
        weighted: whether it was given weights, which could be negative.
        swapped: whether the target depends on the model, and the prediction does not.
    """

    function: str
    arguments: Mapping[str, Argument]
    options: Mapping[str, bool | float | str | None] = field(default_factory=dict)
    value: float = math.nan
    made_by: str | None = None
    whole: bool = False
    weighted: bool = False
    swapped: bool = False

    @property
    def contract(self) -> LossContract:
        """What the function expects."""
        return contract_of(self.function)

    @property
    def prediction(self) -> Argument | None:
        """The argument that holds the predictions; None if it could not be copied."""
        return self.arguments.get(self.contract.prediction)

    @property
    def target(self) -> Argument | None:
        """The argument that holds the targets; None if there is none, or it could not be copied."""
        name = self.contract.target
        return None if name is None else self.arguments.get(name)

    def complete(self, name: str) -> Array | None:
        """Return an argument of which all numbers were copied, and at least one; None otherwise."""
        given = self.arguments.get(name)
        return None if given is None or given.rows is not None or not given.values.size else given.values


@frozen
class LossCalls:
    """The calls that rules judge, of the losses in one pass: the main one first."""

    described: ClassVar[str] = "a loss whose formula is known"

    calls: tuple[LossCall, ...]


class LossTerm(NamedTuple):
    """A loss that each of the first steps computes.

    Attributes:
        function: its name.
        where: the line of the script that computes it; None if not known.
        has_gradient: whether it depends on a parameter that requires a gradient.
        summed: whether it is one of the terms with a gradient whose sum is differentiated.
        beside_constant: whether that sum has a term without a gradient, too.
    """

    function: str
    where: Where | None
    has_gradient: bool
    summed: bool
    beside_constant: bool


@frozen
class LossTerms:
    """The losses that the first steps compute, and the sum that they differentiate.

    What is differentiated has no term with a gradient but those that are `summed`.

    Attributes:
        terms: in the order of their calls.
        totals: (n,), the sum at each step, whatever the factors of its terms.
        values: (n, terms).
    """

    described: ClassVar[str] = "the losses that the first steps compute and add up"

    terms: tuple[LossTerm, ...]
    totals: Array
    values: Array


def rows_kept(shape: tuple[int, ...]) -> int | None:
    """Return how many of the first rows are copied of a tensor; None: all of it."""
    size = math.prod(shape)
    return None if size <= LARGEST else LARGEST // (size // shape[0])
