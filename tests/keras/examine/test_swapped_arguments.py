"""Losses whose arguments are named in the order in which Keras does not give them."""

import numpy as np
import pytest

from diagnostics.collectors.keras.post_run.own_loss import OwnLoss
from diagnostics.facts.dependence import SwappedArguments
from tests.keras.post_run import checked
from tests.keras.programs import keras, layers

ops = keras.ops
X = np.random.default_rng(0).normal(size=(32, 5)).astype("float32")
LABELS = (X[:, :1] > 0).astype("float32")


def found(loss):
    model = keras.Sequential([keras.Input((5,)), layers.Dense(1, "sigmoid")])
    model.compile("adam", loss)
    return checked(OwnLoss, model, X, LABELS, of=SwappedArguments)


def weighted(y_pred, y_true):
    y_pred = ops.clip(y_pred, 1e-6, 1 - 1e-6)
    return -ops.mean(3 * y_true * ops.log(y_pred) + (1 - y_true) * ops.log(1 - y_pred))


def pinball(y_hat, y):
    return ops.mean(ops.maximum(0.9 * (y - y_hat), 0.1 * (y_hat - y)))


class Focal(keras.losses.Loss):
    def call(self, prediction, target):
        prediction = ops.clip(prediction, 1e-6, 1 - 1e-6)
        return -ops.mean(target * (1 - prediction) ** 2 * ops.log(prediction), axis=-1)


def in_order(y_true, y_pred):
    return weighted(y_pred, y_true)


def without_an_order(y_pred, y_true):
    return ops.mean(ops.square(y_pred - y_true))


def unnamed(a, b):
    return weighted(a, b)


@pytest.mark.parametrize(
    ("loss", "names"),
    [(weighted, ("y_pred", "y_true")), (pinball, ("y_hat", "y")), (Focal(), ("prediction", "target"))],
)
def test_are_found(loss, names):
    turned = found(loss)
    assert (turned.first, turned.second) == names
    assert abs(turned.as_called - turned.turned) > 1e-3


@pytest.mark.parametrize("loss", [in_order, without_an_order, unnamed, "binary_crossentropy"])
def test_no_others(loss):
    assert found(loss) is None
