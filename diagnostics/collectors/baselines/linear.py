"""Linear models in NumPy: ridge regression in closed form, and multinomial logistic regression."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from diagnostics.facts.array import Array

RIDGE = (1e-3, 1e-1, 10.0)  # per row; which one is chosen on a fifth of the rows that it is fitted on
LOGISTIC = (1e-4, 1e-2, 1.0)
ITERATIONS = 300  # of a standardised problem; most need fewer
SMALL = 1e-4  # a change of the weights below this, relative to their size, ends it
POWER_ITERATIONS = 20


@dataclass(frozen=True)
class Fitted:
    """A linear model.

    Attributes:
        weights: float64 (features, outputs).
        bias: float64 (outputs,).
        complete: whether the time sufficed.
    """

    weights: Array
    bias: Array
    complete: bool = True

    def scores(self, inputs: Array) -> Array:
        """Return float64 (rows, outputs)."""
        return np.asarray(inputs @ self.weights + self.bias)


def ridge(inputs: Array, targets: Array, penalty: float) -> Fitted:
    """Fit targets (rows, outputs) by squared error and `penalty` times rows times the squared weights."""
    inputs = inputs.astype(np.float64)
    rows, features = inputs.shape
    centre, bias = inputs.mean(0), targets.mean(0)
    centred, wanted = inputs - centre, targets - bias
    if features <= rows:
        weights = np.linalg.solve(centred.T @ centred + penalty * rows * np.eye(features), centred.T @ wanted)
    else:  # the same solution, from a matrix of rows by rows
        weights = centred.T @ np.linalg.solve(centred @ centred.T + penalty * rows * np.eye(rows), wanted)
    return Fitted(weights, bias - centre @ weights)


def logistic(inputs: Array, classes: Array, count: int, penalty: float, deadline: float) -> Fitted:
    """Fit class indices (rows,) by cross entropy, with accelerated gradient steps of a length that cannot diverge.

    Args:
        inputs: float (rows, features), standardised.
        classes: integers (rows,), below `count`.
        count: of classes.
        penalty: times half the squared weights.
        deadline: of `time.monotonic`.
    """
    rows, features = inputs.shape
    wanted = np.eye(count, dtype=np.float32)[classes]
    given = np.concatenate([inputs, np.ones((rows, 1), dtype=np.float32)], axis=1).astype(np.float32)
    held = np.append(np.full(features, penalty), 0.0).astype(np.float32)[:, None]  # the bias is free
    # A half bounds the curvature of a softmax.
    step = 1 / np.float32(0.5 * _largest_eigenvalue(given) / rows + penalty)
    weights = ahead = np.zeros((features + 1, count), dtype=np.float32)
    momentum = 1.0
    for _ in range(ITERATIONS):
        shares = np.exp((scores := given @ ahead) - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        moved = ahead - step * (given.T @ (shares - wanted) / np.float32(rows) + held * ahead)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        change = moved - weights
        ahead = np.asarray(moved + (momentum - 1) / following * change, dtype=np.float32)
        weights, momentum = moved, following
        if np.linalg.norm(change) <= SMALL * np.linalg.norm(weights):
            break
        if time.monotonic() > deadline:
            return Fitted(weights[:-1], weights[-1], complete=False)
    return Fitted(weights[:-1], weights[-1])


def _largest_eigenvalue(given: Array) -> float:
    """Return that of given.T @ given, a little too large rather than too small."""
    vector: Array = np.random.default_rng(0).standard_normal((given.shape[1],), dtype=np.float32)
    size = 1.0
    for _ in range(POWER_ITERATIONS):
        vector = given.T @ (given @ vector)
        size = float(np.linalg.norm(vector))
        vector = vector / np.float32(size)
    return 1.1 * size


@dataclass(frozen=True)
class Chosen:
    """A linear model with the penalty that did best on rows left out of the fit."""

    model: Fitted
    penalty: float


def chosen_ridge(inputs: Array, targets: Array) -> Chosen:
    """Fit targets (rows, outputs) with the best of a few penalties."""
    fit, check = _parted(len(inputs))
    errors = [
        float(np.square(ridge(inputs[fit], targets[fit], penalty).scores(inputs[check]) - targets[check]).mean())
        for penalty in RIDGE
    ]
    best = RIDGE[int(np.argmin(errors))]
    return Chosen(ridge(inputs, targets, best), best)


def chosen_logistic(inputs: Array, classes: Array, count: int, deadline: float) -> Chosen:
    """Fit class indices (rows,) with the best of a few penalties; the time is shared out among the fits."""
    fit, check = _parted(len(inputs))
    right = []
    for place, penalty in enumerate(LOGISTIC):
        left = max(0.0, deadline - time.monotonic())
        until = time.monotonic() + left / (len(LOGISTIC) + 1 - place)
        model = logistic(inputs[fit], classes[fit], count, penalty, until)
        right.append(float((model.scores(inputs[check]).argmax(1) == classes[check]).mean()))
    best = LOGISTIC[int(len(right) - 1 - np.argmax(right[::-1]))]  # of equals the largest penalty
    return Chosen(logistic(inputs, classes, count, best, deadline), best)


def _parted(rows: int) -> tuple[Array, Array]:
    order = np.random.default_rng(1).permutation(rows)
    cut = max(1, rows // 5)
    return (order[cut:], order[:cut]) if rows > 1 else (order, order)
