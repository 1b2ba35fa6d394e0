"""What tells two runs of a script apart: settings, random numbers, weights and rows, as hashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from diagnostics.facts.frozen import frozen

EARLY: Final = 16
"""Steps at the beginning whose rows are hashed."""


@frozen
class StartFacts:
    """How a training began.

    Attributes:
        settings: plain values by name: of the optimizer, of the precision.
        seeds: of the frameworks' generators of random numbers; None for one that was not set.
        states: hashes of the states of Python's and NumPy's global generators, whose seeds cannot be read.
        weights: hashes by parameter, of some of its numbers; what is beyond a bound has one hash.
        rows: by step, the hash of each row of its batch, in order; the first rows of a large batch.
    """

    described: ClassVar[str] = "the start of the training"

    settings: Mapping[str, Any]
    seeds: Mapping[str, Any]
    states: Mapping[str, str]
    weights: Mapping[str, str]
    rows: Mapping[int, tuple[str, ...]]
