"""What a fixed batch and the weights looked like at a few steps of a watched run, for reports to show."""

from __future__ import annotations

from collections.abc import Mapping

from diagnostics.facts.array import Array
from diagnostics.facts.frozen import frozen


@frozen
class Look:
    """The fixed batch at one step.

    Attributes:
        step: steps that the optimizer has made so far.
        loss: over the whole batch; None if it is not known.
        predictions: of the examples shown.
        right: by example, whether the prediction is the target; None where that cannot be said.
    """

    step: int
    loss: float | None
    predictions: tuple[str, ...]
    right: tuple[bool | None, ...]


@frozen
class FixedBatchFacts:
    """A fixed batch over time.

    Attributes:
        size: examples in the batch.
        inputs: of the examples shown, the first of the batch.
        targets: the same for the targets; empty if there are none.
        looks: by step, rising.
    """

    size: int
    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    looks: tuple[Look, ...]


@frozen
class Histogram:
    """The values of one layer, NaN and inf left out.

    Attributes:
        edges: float64 (bins + 1,), rising.
        counts: int64 (bins,).
        quantiles: float64 (5,), at `QUANTILES`.
        total: their sum.
        squares: the sum of their squares.
        not_finite: how many are NaN or infinite.
        share: of the layer's values that were read, 1.0 for all of them.
    """

    edges: Array
    counts: Array
    quantiles: Array
    total: float
    squares: float
    not_finite: int
    share: float


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@frozen
class LayerHistograms:
    """Weights and gradients at one step, by layer; one without finite values, or a gradient, is absent.

    Attributes:
        step: steps that the optimizer has made so far; the gradients are those that it is about to use.
    """

    step: int
    weights: Mapping[str, Histogram]
    gradients: Mapping[str, Histogram]
