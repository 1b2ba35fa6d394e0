"""A call of a loss: the function, and copies of what it was given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from .array import Array
from .frozen import frozen
from .loss_contracts import LossContract, contract_of

LARGEST = 2**20  # numbers of an argument that are copied


@frozen
class Argument:
    """A tensor that a loss was given.

    Attributes:
        values: the tensor; of a large one the first rows.
        rows: how many there are; None if all of them are in `values`.
        ends: lowest and highest of all numbers, where `values` does not hold all.
        unflattened: the shape before it was only flattened, as with `view` or `reshape`; None if it was not.
    """

    values: Array
    rows: int | None = None
    ends: tuple[float, float] | None = None
    unflattened: tuple[int, ...] | None = None

    @classmethod
    def of(cls, values: Array) -> Argument:
        """Keep an array, or its first rows."""
        rows = rows_kept(values.shape)
        if rows is None:
            return cls(values)
        return cls(values[:rows].copy(), len(values), (float(values.min()), float(values.max())))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all of it."""
        return tuple(self.values.shape) if self.rows is None else (self.rows, *self.values.shape[1:])

    @property
    def lowest(self) -> float | None:
        """The lowest number; None if there is none."""
        return self._end(0)

    @property
    def highest(self) -> float | None:
        """The highest number; None if there is none."""
        return self._end(1)

    def _end(self, side: int) -> float | None:
        if self.ends is not None:
            return self.ends[side]
        return float((self.values.min, self.values.max)[side]()) if self.values.size else None


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
    """

    function: str
    arguments: Mapping[str, Argument]
    options: Mapping[str, bool | float | str | None] = field(default_factory=dict)
    value: float = math.nan
    made_by: str | None = None
    whole: bool = False
    weighted: bool = False

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


def rows_kept(shape: tuple[int, ...]) -> int | None:
    """Return how many of the first rows are copied of a tensor; None: all of it."""
    size = math.prod(shape)
    return None if size <= LARGEST else LARGEST // (size // shape[0])
