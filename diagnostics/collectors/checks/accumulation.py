"""Compares the gradient of a batch with that of its micro-batches added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagnostics.errors import InvalidInput, typed_message
from diagnostics.facts.array import Array
from diagnostics.facts.checks import AccumulationFacts

Vector = dict[str, Array]
"""By parameter: float64 (scalars,)."""


@dataclass(frozen=True)
class Parts:
    """A batch, cut into micro-batches.

    Attributes:
        sizes: rows of each.
        labels: labels of each that count; None if all do, or it is not known.
        whole: differentiates the loss of the whole batch.
        part: differentiates that of one micro-batch.
        by_user: lets a function of the user's accumulate.
        still: differentiates with batch norm on its running statistics: one micro-batch, or all with None; None
            if there is no batch norm.
        rounding: the relative rounding error of the weights.
    """

    sizes: tuple[int, ...]
    labels: tuple[int, ...] | None
    whole: Callable[[], Vector]
    part: Callable[[int], Vector]
    by_user: Callable[[Callable[[Any, list[Any]], object]], Vector]
    still: Callable[[int | None], Vector] | None
    rounding: float


def accumulation_facts(parts: Parts, accumulate: Callable[[Any, list[Any]], object] | None) -> AccumulationFacts:
    """Differentiate the batch in one piece and in parts.

    Args:
        parts: the batch.
        accumulate: of the user's; None to weigh each micro-batch by its rows.

    Raises:
        InvalidInput: there is no gradient, or the user's function raised.
    """
    whole = parts.whole()
    if not any(np.any(values) for values in whole.values()):
        raise InvalidInput(
            "accumulation() found no gradient of the whole batch: no parameter gets one that is not 0. Check "
            "every_parameter() first."
        )
    each = [parts.part(number) for number in range(len(parts.sizes))]
    by_rows = weighted(each, [size / sum(parts.sizes) for size in parts.sizes])
    added = by_rows if accumulate is None else _by_user(parts, accumulate)
    still = None
    if parts.still is not None:
        rows = [parts.still(number) for number in range(len(parts.sizes))]
        shares = [size / sum(parts.sizes) for size in parts.sizes]
        still = apart(weighted(rows, shares), parts.still(None))[2]
    ratio, cosine, difference = apart(added, whole)
    return AccumulationFacts(
        sizes=parts.sizes,
        labels=parts.labels,
        ratio=ratio,
        cosine=cosine,
        difference=difference,
        norm=_norm(whole),
        worst=max(whole, key=lambda name: _norm({name: added.get(name, 0.0) - whole[name]})),
        last_alone=None if accumulate is None else _nearest(added, each[-1], len(parts.sizes)),
        by_labels=(
            None
            if not parts.labels or not sum(parts.labels)
            else apart(weighted(each, [count / sum(parts.labels) for count in parts.labels]), whole)[2]
        ),
        still=still,
        rounding=parts.rounding,
    )


def _by_user(parts: Parts, accumulate: Callable[[Any, list[Any]], object]) -> Vector:
    try:
        found = parts.by_user(accumulate)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            f"accumulation() called accumulate(model, micro_batches), and that raised {typed_message(error)}."
        ) from error
    if not found:
        raise InvalidInput(
            "accumulation() called accumulate(model, micro_batches), and no parameter of that model has a "
            "gradient. Let it run the model that it is given, call backward for each micro-batch, and not zero "
            "the gradients at the end."
        )
    return found


def weighted(each: Sequence[Vector], shares: Sequence[float]) -> Vector:
    """Add up gradients, each with its share."""
    names = dict.fromkeys(name for one in each for name in one)
    return {
        name: np.sum([share * one[name] for one, share in zip(each, shares, strict=True) if name in one], axis=0)
        for name in names
    }


def apart(one: Vector, other: Vector) -> tuple[float, float, float]:
    """Return the ratio of a gradient to another along the latter, their cosine, their difference as a share."""
    names = dict.fromkeys([*one, *other])
    dot = sum(float(one[name] @ other[name]) for name in names if name in one and name in other)
    norm = _norm(other)
    difference = _norm({name: one.get(name, 0.0) - other.get(name, np.zeros(1)) for name in names})
    mine = _norm(one)
    return dot / norm**2, dot / (mine * norm) if mine else 0.0, difference / norm


def _nearest(added: Vector, last: Vector, count: int) -> float | None:
    """Return how far a gradient is from that of the last micro-batch, in whatever of the two usual scales."""
    if not _norm(last):
        return None
    scales = (1.0, 1.0 / count)
    return min(apart(added, {name: scale * values for name, values in last.items()})[2] for scale in scales)


def _norm(vector: Vector) -> float:
    return float(np.sqrt(sum(float(np.sum(np.square(values))) for values in vector.values())))
