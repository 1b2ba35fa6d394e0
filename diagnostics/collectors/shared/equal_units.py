"""Looks for weights whose units are copies of each other before the first step, and still are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.layers import EqualUnitsFacts

REL_TOLERANCE = 1e-6  # relative: units of a weight closer than this are the same, up to rounding
MAX_NUMBERS = 2**26  # numbers of a weight; a larger one is not compared

Read = Callable[[int | None], Array]
"""Returns so many units of a weight, or all: (units, ...), of floating point; at least one axis more."""


def are_alike(units: Array) -> bool:
    """Whether units (units, ...) are copies of each other, zeros included."""
    return bool(np.abs(units - units[:1]).max() <= REL_TOLERANCE * np.abs(units).max())


def units_alike(read: Read | None) -> bool:
    """Whether all units of a weight are copies of each other; False of one that is not compared."""
    return read is not None and are_alike(read(2)) and are_alike(read(None))  # nearly all weights differ at once


class EqualUnits:
    """Compares the units of each trainable weight before the first step and on request.

    Memory: one unit of each weight whose units are equal at the start.
    """

    def __init__(self) -> None:
        self._started: dict[str, tuple[Read, Array]] | None = None

    def begin(self, weights: Mapping[str, Read | None]) -> None:
        """Remember which weights have equal units."""
        self._started = {
            name: (read, read(1).copy())
            for name, read in weights.items()
            if read is not None and units_alike(read)
        }

    def facts(self) -> EqualUnitsFacts | None:
        """Compare again; None before `begin`."""
        if self._started is None:
            return None
        return EqualUnitsFacts(
            tuple(
                name
                for name, (read, first) in self._started.items()
                if not np.array_equal(read(1), first) and units_alike(read)
            )
        )
