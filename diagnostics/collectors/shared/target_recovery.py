"""Recovers the targets of a training pass from the model's output and its gradient.

Under each common loss the gradient of the output says what the target was: under mean squared error it is twice
their difference, over the number of terms. A formula is the loss's if the value that follows from it is the one
that the script differentiated, step after step, however the script wrote it. NumPy only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import LossKind

TINY = 1e-12  # of a probability
SUM = 1e-3  # of probabilities: how far they may add up to another number than 1
OUTSIDE = 1e-3  # of 0 to 1, by which a recovered probability may lie outside from rounding
CERTAIN = 1 - 1e-6  # a probability whose float32 gradient may be 0
SURE = 0.999  # of a probability: what is left of the gradient is mostly rounding
FEWEST = 8  # examples that show how much each counts


@dataclass(frozen=True)
class Recovered:
    """What one formula makes of a pass.

    Attributes:
        targets: float64 (n, outputs); of classes, a share each.
        loss: the value of the formula, averaged as the script's own loss.
    """

    targets: Array
    loss: float


@dataclass(frozen=True)
class Formula:
    """A loss, as a function of output and target.

    Attributes:
        kind: of loss.
        recover: returns targets and loss from output and gradient (n, outputs); None where they cannot be its.
        constant: returns the loss (scalar) of answering `answer` (outputs,) for targets with these moments: mean
            (outputs,) and mean square.
    """

    kind: LossKind
    recover: Callable[[Array, Array], Recovered | None]
    constant: Callable[[Array, Array, float], float]


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
    """Compare gradients with the form that they have under cross entropy, where they show the labels.

    That gradient is softmax(scores) minus 1 at the label, for each example, times what the example counts. So
    where a gradient is of this form the label is its only negative entry, and the loss is known. All passes
    together: one by one the small operations would cost more than the training step of a small model.

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


def _squared(output: Array, gradient: Array) -> Recovered:
    rest = gradient * (output.size / 2)
    return Recovered(output - rest, float(np.square(rest).mean()))


def _logits(output: Array, gradient: Array) -> Recovered | None:
    target = 1 / (1 + np.exp(-np.clip(output, -500, 500))) - gradient * output.size
    return _binary(target, np.logaddexp(0, output) - target * output)


def _probabilities(output: Array, gradient: Array) -> Recovered | None:
    if output.min() <= 0 or output.max() >= 1:
        return None
    target = output - gradient * output.size * output * (1 - output)
    return _binary(target, -target * np.log(output) - (1 - target) * np.log1p(-output))


def _binary(target: Array, terms: Array) -> Recovered | None:
    if target.min() < -OUTSIDE or target.max() > 1 + OUTSIDE:
        return None
    return Recovered(np.clip(target, 0, 1), float(terms.mean()))


def _softmax(output: Array, gradient: Array) -> Recovered | None:
    shifted = output - output.max(axis=1, keepdims=True)
    log_shares = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return _classes(np.exp(log_shares) - gradient * len(output), log_shares)


def _log_probabilities(output: Array, gradient: Array) -> Recovered | None:
    if np.abs(np.exp(np.minimum(output, 1)).sum(axis=1) - 1).max() > SUM:
        return None
    return _classes(-gradient * len(output), output)


def _shares(output: Array, gradient: Array) -> Recovered | None:
    if output.min() < 0 or np.abs(output.sum(axis=1) - 1).max() > SUM:
        return None
    return _classes(-gradient * len(output) * output, np.log(np.maximum(output, TINY)))


def _classes(target: Array, log_shares: Array) -> Recovered | None:
    if output_is_single(target) or target.min() < -OUTSIDE or np.abs(target.sum(axis=1) - 1).max() > SUM:
        return None
    return Recovered(np.clip(target, 0, 1), float(-(target * log_shares).sum(axis=1).mean()))


def output_is_single(values: Array) -> bool:
    """Whether there is one output an example, over which a softmax says nothing."""
    return int(values.shape[1]) < 2


def _constant_squared(answer: Array, mean: Array, square: float) -> float:
    return float(square - 2 * (answer * mean).mean() + np.square(answer).mean())


def _constant_binary(answer: Array, mean: Array, _square: float) -> float:
    answer = np.clip(answer, TINY, 1 - TINY)
    return float(-(mean * np.log(answer) + (1 - mean) * np.log1p(-answer)).mean())


def _constant_classes(answer: Array, mean: Array, _square: float) -> float:
    return float(-(mean * np.log(np.maximum(answer, TINY))).sum())


FORMULAS: dict[str, Formula] = {
    "softmax": Formula("cross_entropy", _softmax, _constant_classes),
    "log_probabilities": Formula("cross_entropy", _log_probabilities, _constant_classes),
    "shares": Formula("cross_entropy", _shares, _constant_classes),
    "logits": Formula("binary_cross_entropy", _logits, _constant_binary),
    "probabilities": Formula("binary_cross_entropy", _probabilities, _constant_binary),
    "squared": Formula("mean_squared_error", _squared, _constant_squared),
}
"""By name; each takes the mean over all terms, as losses do by default."""


def recovered(output: Array, gradient: Array, of_classes: bool = True) -> dict[str, Recovered]:
    """Return, by name, what each formula makes of one pass; those that cannot be its are left out.

    Args:
        output: float64 (n, outputs), finite.
        gradient: float64 (n, outputs), of the loss by the output.
        of_classes: whether the second axis may count classes.
    """
    if not gradient.any() or not (np.isfinite(output).all() and np.isfinite(gradient).all()):
        return {}
    found = {}
    with np.errstate(all="ignore"):
        for name, formula in FORMULAS.items():
            if formula.kind == "cross_entropy" and (not of_classes or output_is_single(output)):
                continue
            one = formula.recover(output, gradient)
            if one is not None and np.isfinite(one.loss):
                found[name] = one
    return found


def leaves_out(output: Array, gradient: Array) -> bool:
    """Whether the loss leaves some rows out: they get no gradient, and not because the answer is certain.

    Args:
        output: float64 (n, classes), finite.
        gradient: of the same shape.
    """
    still = output[~gradient.any(axis=1)]
    top = 1 / np.exp(still - still.max(axis=1, keepdims=True, initial=-np.inf)).sum(axis=1)
    return bool((top < CERTAIN).any())


def recovered_classes(output: Array, gradient: Array) -> dict[str, Recovered]:
    """Return, by name, what each formula of classes makes of a pass with several answers an example.

    Places without any gradient are left out, as padding is, or the nodes of a graph that are kept for a test.

    Args:
        output: float64 (n, classes), (n, length, classes) or (n, classes, ...), finite.
        gradient: of the same shape.
    """
    for axis in (-1, 1) if output.ndim > 2 else (1,):
        scores, of_loss = (np.moveaxis(one, axis, -1).reshape(-1, one.shape[axis]) for one in (output, gradient))
        counted = of_loss.any(axis=1)
        found = recovered(scores[counted], of_loss[counted]) if counted.any() else {}
        of_classes = {name: one for name, one in found.items() if FORMULAS[name].kind == "cross_entropy"}
        if of_classes:
            return of_classes
    return {}
