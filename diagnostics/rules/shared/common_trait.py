"""Finds a property that some examples of a batch share and no other example has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from diagnostics.facts.array import Array
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.text.join import listed

Chosen = npt.NDArray[np.bool_]

# Maximum probability that a label or a range separates as many random examples, over all labels or ranges
# that were tried. Other traits need no such limit: they cause NaN or inf by themselves.
CHANCE = 0.1
LABELS_NAMED = 3  # a trait made of more labels than this explains nothing
COLUMNS_NAMED = 3


def shared_trait(rows: tuple[int, ...], batch: BatchFacts) -> str | None:
    """Describe in one sentence what these examples have in common and no other example has.

    Args:
        rows: the examples, counted from 0; at least one.
        batch: the batch that they are from.

    Returns:
        The first that applies: non-finite values, a mask of zeros, a constant input, a label, a column value,
        a range. None if none applies, or if it may well be due to chance.
    """
    chosen = np.zeros(batch.size, dtype=np.bool_)
    chosen[list(rows)] = True
    arrays = _arrays(batch)
    only = "" if chosen.all() else ", and no other example does"
    if trait := _breaks_arithmetic(arrays, batch.attention_mask, chosen):
        who = f"Example {rows[0]} has" if len(rows) == 1 else f"{_all(rows)} have"
        return f"{who} {trait}{only}."
    doubt = 1 / math.comb(batch.size, len(rows))
    if doubt < CHANCE and (trait := _label(_class_per_example(batch), chosen)):
        return f"{_all(rows)} have {trait}{only}."
    for what, values in _columns(arrays):
        if len(rows) > 1 and (trait := _tie(values, chosen)):
            return f"In {_all(rows).lower()}, {what} is {trait}; it differs in all other examples."
    target = {name: values for name, values in arrays.items() if values is batch.labels}
    for family in (list(_columns(target)), list(_extremes(arrays)), list(_columns(arrays))):
        if doubt * 2 * len(family) < CHANCE:  # twice: above all others, or below
            for what, values in family:
                if trait := _range(values, chosen):
                    return f"In {'this example' if len(rows) == 1 else _all(rows).lower()}, {what} is {trait}."
    return None


def _all(rows: tuple[int, ...]) -> str:
    return "Both" if len(rows) == 2 else "All of them"


def _arrays(batch: BatchFacts) -> dict[str, Array]:
    """Return inputs and targets other than class labels as (size, ...), by a name that fits a sentence."""
    named = {f"input {name}" if name.isdigit() else name: values for name, values in batch.inputs.items()}
    if batch.labels is not None and _class_per_example(batch) is None:
        named[batch.target_name] = batch.labels
    return {
        name: values
        for name, values in named.items()
        if values.dtype.kind in "biuf" and values.shape[:1] == (batch.size,) and values.size
    }


def _class_per_example(batch: BatchFacts) -> Array | None:
    """Return integers (size,), or None if an example has no label, several labels, or a numeric target."""
    labels = batch.labels
    if labels is None or labels.dtype.kind not in "iu" or labels.size != batch.size:
        return None
    return labels.reshape(-1)


def _breaks_arithmetic(arrays: Mapping[str, Array], mask: Array | None, chosen: Chosen) -> str | None:
    """Name values that cause NaN or inf by themselves: one example is enough as evidence."""
    for name, values in arrays.items():
        broken = ~np.isfinite(values.reshape(len(values), -1))
        if np.array_equal(broken.any(axis=1), chosen):
            columns = np.flatnonzero(broken.any(axis=0)).tolist()
            few = values.ndim == 2 and len(columns) <= COLUMNS_NAMED
            which = f" (column {', '.join(map(str, columns))})" if few else ""
            return f"NaN or infinite values in {name}{which}"
    if mask is not None and np.array_equal(~mask.reshape(len(mask), -1).any(axis=1), chosen):
        return "only zeros in the attention mask"
    for name, values in arrays.items():
        flat = values.reshape(len(values), -1)
        same = (flat == flat[:, :1]).all(axis=1)
        if values.dtype.kind == "f" and flat.shape[1] > 1 and np.array_equal(same, chosen):
            return f"the same value everywhere in {name} (standard deviation 0)"
    return None


def _label(labels: Array | None, chosen: Chosen) -> str | None:
    if labels is None:
        return None
    theirs, counts = np.unique(labels[chosen], return_counts=True)
    # Each label at least twice: five examples with five labels out of a thousand differ from the others anyway.
    if theirs.size > LABELS_NAMED or counts.min() < 2 or np.isin(labels[~chosen], theirs).any():
        return None
    return f"label {listed(theirs, 'or')}"


def _extremes(arrays: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    for name, values in arrays.items():
        if values.size > len(values):
            yield f"the largest value of {name}", values.reshape(len(values), -1).max(axis=1)
            yield f"the smallest value of {name}", values.reshape(len(values), -1).min(axis=1)


def _columns(arrays: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    for name, values in arrays.items():
        for place in np.ndindex(values.shape[1:]):
            where = f"column {place[0]}" if len(place) == 1 else f"position {place}"
            yield f"{where} of {name}" if values.size > len(values) else name, values[(slice(None), *place)]


def _tie(values: Array, chosen: Chosen) -> str | None:
    """Return the value that all chosen examples share in a column, if all other examples differ from it."""
    theirs, others = values[chosen], values[~chosen]
    if (theirs != theirs[0]).any() or others.size < 2 or np.unique(others).size < others.size:
        return None
    return None if theirs[0] in others else _number(theirs[0])


def _range(values: Array, chosen: Chosen) -> str | None:
    theirs, others = values[chosen], values[~chosen]
    if not others.size or np.isnan(values).any():
        return None
    if theirs.min() > others.max():
        return f"{_number(theirs.min())} or more; in the others it is {_number(others.max())} or less"
    if theirs.max() < others.min():
        return f"{_number(theirs.max())} or less; in the others it is {_number(others.min())} or more"
    return None


def _number(value: float) -> str:
    return f"{float(value):.4g}"
