"""Checks whether evaluation targets have a different unit from training targets."""

from __future__ import annotations

from typing import Final

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.inputs import InputFacts, TargetSides

from .input_shift import DRIFT, distance, have_same_shape, is_standardised, moments

TRAINING_ROWS: Final = 32
EVALUATION_ROWS: Final = 16
OUTPUTS: Final = 64  # more than this are an image or a signal
VALUES: Final = 10  # distinct targets on either side; fewer are grades or classes
FACTOR: Final = 5.0  # in scale, if the inputs of both sides look alike
FACTOR_STANDARD: Final = 3.0  # the same if only one side has mean 0 and standard deviation 1
HUGE: Final = 20.0  # if the inputs are unknown, or the rows are a series, which drifts


def can_be_compared(sides: TargetSides) -> bool:
    """Return whether both sides have enough targets, and these are numbers, not classes."""
    one, other = sides.training, sides.evaluation
    if len(one) < TRAINING_ROWS or len(other) < EVALUATION_ROWS or one.shape[1] > OUTPUTS:
        return False
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return False
    return all(len(np.unique(side[:, 0])) >= VALUES for side in (one, other))


def unit_ratio(sides: TargetSides) -> float | None:
    """Return the ratio of the spread of evaluation targets to that of training targets; None if about equal.

    They must differ in little more than mean and scale in nearly every output, and the inputs must not differ.
    """
    one, other = sides.training.T, sides.evaluation.T
    ours, theirs = moments(one), moments(other)
    apart, alike = distance(ours, theirs), inputs_alike(sides.inputs)
    if apart is None or alike is False or not have_same_shape(one, other, ours.judged & theirs.judged):
        return None
    known = alike is True and not _is_series(sides.evaluation)
    standard = is_standardised(ours) != is_standardised(theirs)
    factor = (FACTOR_STANDARD if standard else FACTOR) if known else HUGE
    return float(np.exp(np.median(apart.scales))) if apart.is_scaled(factor) else None


def inputs_alike(inputs: InputFacts | None) -> bool | None:
    """Return whether the inputs of both sides look alike; None if unknown."""
    if inputs is None:
        return None
    found = []
    for name, sample in inputs.training.items():
        other = inputs.evaluation.get(name)
        if other is None:
            continue
        if sample.batches[0].shape[1] != other.batches[0].shape[1]:
            return False
        apart = distance(moments(sample.numbers()), moments(other.numbers()))
        found.append(None if apart is None else apart.is_close())
    return None if None in found or not found else all(found)


def _is_series(targets: Array) -> bool:
    """Return whether each row resembles the row before it."""
    values = targets.mean(axis=1)
    first, second = values[:-1], values[1:]
    if not first.std() or not second.std():
        return False
    return bool(np.corrcoef(first, second)[0, 1] > DRIFT)
