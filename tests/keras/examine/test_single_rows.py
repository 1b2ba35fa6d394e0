"""Models with batch norm that are trained on one row at a time."""

import numpy as np
import pytest

from diagnostics.collectors.keras.post_run.batch_norm_single_row import SingleRows
from tests.keras.post_run import checked
from tests.keras.programs import keras, layers

X = np.random.default_rng(0).normal(size=(8, 5)).astype("float32")


def found(*parts, rows=1, told=None, shape=(5,)):
    model = keras.Sequential([keras.Input(shape), *parts, layers.Flatten(), layers.Dense(3, "softmax")])
    x = X[:rows].reshape(rows, *shape)
    return checked(SingleRows, model, x, np.zeros(rows), rows_at_once=told)


@pytest.mark.parametrize(("rows", "told"), [(1, None), (8, 1)])
def test_batch_norm_of_one_value_a_channel_is_found(rows, told):
    parts = layers.Dense(4), layers.BatchNormalization(name="norm"), layers.Activation("relu")
    assert found(*parts, rows=rows, told=told).layers == ("norm",)


@pytest.mark.parametrize(("rows", "told"), [(8, None), (8, 8)])
def test_batches_of_several_rows_are_not(rows, told):
    assert found(layers.Dense(4), layers.BatchNormalization(), rows=rows, told=told) is None


def test_batch_norm_of_several_positions_is_not():
    assert found(layers.Dense(4), layers.BatchNormalization(), shape=(5, 1)) is None


def test_a_frozen_layer_is_not():
    assert found(layers.Dense(4), layers.BatchNormalization(trainable=False)) is None


def test_layer_norm_is_not():
    assert found(layers.Dense(4), layers.LayerNormalization()) is None
