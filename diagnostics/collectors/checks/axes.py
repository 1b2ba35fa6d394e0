"""Reads named axes, `batch time features`, and makes arrays of varying sizes that fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from diagnostics.errors import InvalidInput
from diagnostics.facts.array import Array

# No two sizes are equal, so that no axis can be mistaken for another; small, because loops are slow.
SIZES = (4, 5, 3, 6, 2, 7)
ODD_SIZES = (3, 5, 7, 9, 11, 13)  # no multiple of a block of 2, 4 or 8
LARGER_SIZES = (8, 17, 12, 5, 3, 2)

_AXIS = re.compile(r"[A-Za-z_]\w*|\d+")
_SPEC = re.compile(r"\s*(?P<axes>[\w\s]*?)\s*(?:<\s*(?P<below>\d+)\s*)?")


@dataclass(frozen=True)
class Axes:
    """The axes of an array.

    Attributes:
        names: one for each axis; a number stands for itself.
        below: integers from 0 to below this one are drawn; None for normal floats.
    """

    names: tuple[str, ...]
    below: int | None = None

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape for sizes by name."""
        return tuple(int(name) if name.isdigit() else sizes[name] for name in self.names)

    def array(self, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
        """Draw float32, or int64 where `below` is given."""
        if self.below is None:
            return rng.standard_normal(self.shape(sizes)).astype(np.float32)
        return rng.integers(0, self.below, self.shape(sizes))


def read_axes(text: str, where: str) -> Axes:
    """Read `batch time features`, `batch time 16`, or `batch time < 100` for integers from 0 to 99.

    Raises:
        InvalidInput: the text is none of these.
    """
    found = _SPEC.fullmatch(text)
    names = found["axes"].split() if found else []
    if found is None or not names or not all(_AXIS.fullmatch(name) for name in names) or found["below"] == "0":
        raise InvalidInput(
            f"{where} names its axes as {text!r}. Write one name or number for each axis, divided by spaces, such "
            'as "batch time features" or "batch 3 height width"; "batch time < 100" for integers from 0 to 99. '
            "What is no text is handed on as it is."
        )
    if "0" in names:
        raise InvalidInput(f"{where} names its axes as {text!r}. An axis of size 0 holds nothing to compare.")
    return Axes(tuple(names), None if found["below"] is None else int(found["below"]))


def varied_sizes(specs: Iterable[Axes]) -> Iterator[dict[str, int]]:
    """Yield sizes by name: distinct, odd, distinct the other way round, each axis of size 1 in turn, larger."""
    names = list(dict.fromkeys(name for axes in specs for name in axes.names if not name.isdigit()))
    if not names:
        yield {}
        return

    def of(sizes: tuple[int, ...]) -> dict[str, int]:
        return {name: sizes[place] if place < len(sizes) else 2 for place, name in enumerate(names)}

    base = of(SIZES)
    yield base
    yield of(ODD_SIZES)
    if len(names) > 1:
        yield dict(zip(names, reversed(base.values()), strict=True))
    for name in names:
        yield {**base, name: 1}
    yield of(LARGER_SIZES)
