"""Recovers the labels from the gradient of the scores, where the loss is cross entropy.

That gradient is softmax(scores) minus 1 at the label, for each example, times what the example counts. So where a
gradient is of this form the label is its only negative entry, and the loss is known. NumPy only, and all passes
together: one by one the small operations would cost more than the training step of a small model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diagnostics.facts.array import Array

SURE = 0.999  # of a probability: what is left of the gradient is mostly rounding
FEWEST = 8  # examples that show how much each counts


@dataclass(frozen=True)
class Recognised:
    """What the gradients of k passes, over n examples in all, say about the loss.

    Attributes:
        labels: integers (n,), -1 where not known.
        telling: bool (k,), whether the gradient of the pass says anything at all.
        softmax: bool (k,), whether it is that of a softmax: in each example it adds up to 0 over the classes.
        plain: bool (k,), whether it is that of one label an example, all of which count the same.
        shares: float64 (n, classes), the softmax of the scores.
    """

    labels: Array
    telling: Array
    softmax: Array
    plain: Array
    shares: Array


def recognise(scores: Array, gradient: Array, starts: Array, tolerance: Array) -> Recognised:
    """Compare gradients with the form that they have under cross entropy.

    Args:
        scores: float64 (n, classes), finite.
        gradient: float64 (n, classes), of any loss by the scores.
        starts: integers (k,), rising from 0: where the examples of each pass begin.
        tolerance: float64 (n,), the allowed deviation of a gradient, as a share of its L1 norm.
    """
    rows, width = scores.shape
    gradient = np.where(np.isfinite(gradient).all(axis=1, keepdims=True), gradient, 0.0)
    every, lowest = np.arange(rows), gradient.argmin(axis=1)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    size = np.abs(gradient).sum(axis=1)
    # An example that the model is quite sure of, and rightly so, has a gradient of 0 at its label.
    there = gradient[every, lowest] < 0
    rest = 1 - shares[every, lowest]
    telling = there & (rest > 1 - SURE)
    balanced = np.abs(gradient.sum(axis=1)) <= tolerance * size
    scale = -gradient[every, lowest] / np.where(telling, rest, 1)
    expected = scale[:, None] * shares
    expected[every, lowest] -= scale
    hard = np.abs(gradient - expected).sum(axis=1) <= 2 * tolerance * size

    def in_each(values: Array) -> Array:
        result: Array = np.logical_and.reduceat(values | ~telling, starts)
        return result

    count = np.add.reduceat(telling.astype(np.int64), starts)
    greatest = np.maximum.reduceat(np.where(telling, scale, -np.inf), starts)
    least = np.minimum.reduceat(np.where(telling, scale, np.inf), starts)
    equal = greatest <= (1 + 5 * tolerance[starts]) * least
    softmax, of_form = in_each(balanced), in_each(balanced & hard)
    if width == 2:
        # Any two numbers that add up to 0 are of that form: there only equal scales tell, of enough examples.
        # And an example that the model is sure of has hardly a gradient: under an absolute error it has all of it,
        # and scores far from 0, as prices are, would pass for answers.
        small = (1 - SURE + tolerance) * np.repeat(greatest, np.diff(starts, append=rows))
        quiet = np.logical_and.reduceat(telling | ~there | (-gradient[every, lowest] <= small), starts)
        softmax = of_form = of_form & equal & quiet
        enough = count >= FEWEST
    else:
        enough = count > 0
    of_pass = np.repeat(of_form & enough, np.diff(starts, append=rows))
    return Recognised(np.where(of_pass & there, lowest, -1), enough, softmax, of_form & equal, shares)
