"""Facts about gradients that tests ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.frozen import frozen

FADED = 2.0**-23
"""Of the largest gradient: what is smaller is lost where float32 adds up the parts of all positions."""


@frozen
class ParameterGradient:
    """The gradient of one trainable parameter.

    Attributes:
        name: as the model names it.
        size: scalars.
        norm: of the gradient in the first step; None if it has none, NaN or inf if it is not finite.
        nonfinite: scalars of it that are NaN or infinite.
        later: the largest norm in steps after the first, where it was 0 or None before.
    """

    name: str
    size: int
    norm: float | None
    nonfinite: int = 0
    later: float = 0.0

    @property
    def reached(self) -> bool:
        """Whether some step would change it."""
        return bool(self.norm) or self.later > 0


@frozen
class AccumulationFacts:
    """The gradient of a batch, and that of its micro-batches added up.

    Attributes:
        sizes: rows of each micro-batch.
        labels: labels of each that count; None if they all do.
        ratio: of the accumulated gradient to that of the whole batch, along the latter.
        cosine: of the angle between them.
        difference: the norm of their difference, as a share of that of the whole batch's gradient.
        norm: of the whole batch's gradient.
        worst: the parameter that differs most.
        last_alone: the difference from the gradient of the last micro-batch, as a share; None if it has none.
        by_labels: the difference where each micro-batch counts by its labels; None if they all count.
        still: the difference with batch norm on its running statistics; None without batch norm.
        rounding: the relative rounding error of the weights' dtype.
    """

    sizes: tuple[int, ...]
    labels: tuple[int, ...] | None
    ratio: float
    cosine: float
    difference: float
    norm: float
    worst: str
    last_alone: float | None = None
    by_labels: float | None = None
    still: float | None = None
    rounding: float = FADED


@frozen
class PositionGradients:
    """The gradient by the input at each position of sequences of growing length.

    Attributes:
        profiles: by length: float64 (length,), the norm over rows and features.
    """

    profiles: Mapping[int, Array] = field(default_factory=dict)

    def share(self, length: int) -> float:
        """Return the gradient at the first position, as a share of the largest; NaN if one is not finite."""
        profile = self.profiles[length]
        largest = float(profile.max())
        if not math.isfinite(largest):
            return math.nan
        return float(profile[0] / largest) if largest > 0 else 0.0

    def growth(self, length: int) -> float:
        """Return the gradient at the first position, as a multiple of that at the last; NaN if that is 0."""
        profile = self.profiles[length]
        return float(profile[0] / profile[-1]) if profile[-1] > 0 else math.nan

    def positions_a_decade(self, length: int) -> float | None:
        """Return over how many positions the gradient falls to a tenth, going back; None if it does not."""
        profile = self.profiles[length]
        there = np.flatnonzero(profile > 0)
        if len(there) < 2:
            return None
        decades = math.log10(profile[there[-1]] / profile[there[0]])
        return (there[-1] - there[0]) / decades if decades > 0 else None

    def reach(self, length: int, share: float = FADED) -> int:
        """Return how many positions from the end the gradient is at least this share of the largest."""
        profile = self.profiles[length]
        largest = float(profile.max())
        if not largest > 0:
            return 0
        return length - int(np.flatnonzero(profile >= share * largest)[0])
