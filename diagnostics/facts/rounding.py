"""Updates of weights in half precision: plain numbers and NumPy arrays, and no framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .pipeline import Array


@dataclass(frozen=True)
class RoundingFacts:
    """A sample of the weights in half precision that an optimizer of the framework's own steps on.

    Attributes:
        dtype: ``bfloat16`` or ``float16``.
        optimizer: class name.
        layers: that the weights belong to.
        first_step: whose weights are compared with all later ones.
        last_step: the latest that was looked at.
        samples: steps that were looked at.
        weights: float32 (n,), the values in the first of them.
        moved: bool (n,), whether the value was ever another one.
        with_gradient: integers (n,), in how many of the samples the gradient was not 0.
        gradients: float32 (n,), mean absolute gradient over the samples.
    """

    described: ClassVar[str] = "weights in half precision"

    dtype: str
    optimizer: str
    layers: tuple[str, ...]
    first_step: int
    last_step: int
    samples: int
    weights: Array
    moved: Array
    with_gradient: Array
    gradients: Array
