"""Losses whose arguments are named in the order in which Keras does not give them."""

import numpy as np
import pytest

from diagnostics.collectors.keras.post_run.own_loss import OwnLoss
from diagnostics.facts.dependence import SwappedArguments
from diagnostics.rules.model.loss.swapped_loss_arguments import SwappedLossArguments
from tests.keras.post_run import checked
from tests.keras.programs import keras, layers

ops = keras.ops
X = np.random.default_rng(0).normal(size=(32, 5)).astype("float32")
LABELS = (X[:, :1] > 0).astype("float32")
SHARES = np.exp(X[:, :3]) / np.exp(X[:, :3]).sum(axis=1, keepdims=True)


def found(loss, target=LABELS):
    last = layers.Dense(1, "sigmoid") if target is LABELS else layers.Dense(3, "softmax")
    model = keras.Sequential([keras.Input((5,)), last])
    model.compile("adam", loss)
    return checked(OwnLoss, model, X, target, of=SwappedArguments)


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


def swapped_library_loss(y_true, y_pred):
    return keras.losses.binary_crossentropy(y_pred, y_true)


def swapped_categorical(y_true, y_pred):
    return keras.losses.categorical_crossentropy(y_pred, y_true)


def log_of_the_targets(y_true, y_pred):
    return -2 * ops.sum(y_pred * ops.log(ops.maximum(y_true, 1e-6)), axis=-1)


def weighted_shares(y_true, y_pred):
    return -ops.sum(ops.convert_to_tensor([1.0, 2.0, 5.0]) * y_true * ops.log(y_pred + 1e-7), axis=-1)


def focal_shares(y_true, y_pred):
    return -ops.sum(y_true * (1 - y_pred) ** 2 * ops.log(y_pred + 1e-7), axis=-1)


def reverse_divergence(y_true, y_pred):
    return keras.losses.kl_divergence(y_pred, y_true)


def one_minus_product(y_true, y_pred):
    return 1 - ops.sum(y_true * y_pred, axis=-1)


def soft_dice(y_true, y_pred):
    return 1 - 2 * ops.sum(y_true * y_pred) / (ops.sum(ops.square(y_true)) + ops.sum(y_pred))


@pytest.mark.parametrize(
    ("loss", "target", "entropy"),
    [
        (swapped_library_loss, LABELS, "binary_crossentropy"),
        (swapped_categorical, SHARES, "categorical_crossentropy"),
    ],
)
def test_finds_a_cross_entropy_by_its_value(loss, target, entropy):
    assert found(loss, target).entropy == entropy


def test_finds_a_formula_that_is_lowest_at_the_surest_prediction():
    swapped = found(log_of_the_targets, SHARES)
    assert swapped.entropy is None
    assert swapped.surer < 0.9 * swapped.right


@pytest.mark.parametrize(
    "loss",
    [weighted_shares, focal_shares, reverse_divergence, one_minus_product, soft_dice, "categorical_crossentropy"],
)
def test_no_loss_of_shares_in_the_right_order(loss):
    swapped = found(loss, SHARES)
    assert swapped is None or SwappedLossArguments().from_values(swapped) is None
