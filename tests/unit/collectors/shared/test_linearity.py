"""Unit tests of what is linear along a line, with functions written out."""

import numpy as np
import pytest

from diagnostics.collectors.shared.dependence.linearity import as_linear, is_half

RANDOM = np.random.default_rng(0)
ONE, OTHER = RANDOM.normal(size=(2, 7, 5))
WEIGHTS = RANDOM.normal(size=(5, 4)) / 3


def along(function):
    return as_linear(lambda place: function((ONE + place * (OTHER - ONE)) @ WEIGHTS + 0.3))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


@pytest.mark.parametrize(
    "last",
    [
        lambda x: x,
        lambda x: x[:, 0],
        lambda x: sigmoid(x[:, :1] / 4),
        lambda x: softmax(x / 4),
        lambda x: np.log(softmax(x / 4)),
    ],
    ids=["none", "one number", "sigmoid", "softmax", "log softmax"],
)
def test_linear_up_to_the_last_activation(last):
    assert along(last) is not None


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.maximum(x, 0),
        lambda x: np.maximum(x + 8, 0),
        np.tanh,
        np.square,
        lambda x: softmax(np.maximum(x, 0)),
        lambda x: 0 * x + 2,
        lambda x: x + np.nan,
    ],
    ids=["relu", "relu that is on for the examples", "tanh", "square", "relu and softmax", "constant", "NaN"],
)
def test_not_linear(function):
    assert along(function) is None


@pytest.mark.parametrize("steep", [0.25, 1.0, 2.0])
def test_half_the_weights_bring_half_the_distance(steep):
    def of(factor):
        return lambda place: sigmoid(factor * steep * ((ONE + place * (OTHER - ONE)) @ WEIGHTS) + 0.3)

    undo = as_linear(of(1.0))
    assert is_half(of(1.0), of(0.5), undo)
    assert not is_half(of(1.0), of(0.4), undo)
    assert not is_half(of(1.0), of(1.0), undo)
