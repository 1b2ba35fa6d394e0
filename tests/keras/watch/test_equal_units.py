"""Kernels whose units are copies of each other before a `fit`, and after it."""

import numpy as np

from diagnostics.collectors.keras.weights import units_of
from diagnostics.collectors.shared.equal_units import EqualUnits
from tests.keras.programs import keras, layers

X = np.random.default_rng(0).normal(size=(64, 5)).astype("float32")
LABELS = np.arange(64) % 3


def seen(*parts, steps=4):
    model = keras.Sequential([keras.Input((5,)), *parts])
    model.compile("adam", "sparse_categorical_crossentropy")
    units = EqualUnits()
    assert units.facts() is None
    units.begin({variable.path: units_of(variable) for variable in model.trainable_variables})
    if steps:
        model.fit(X, LABELS, batch_size=16, epochs=steps // 4, verbose=0)
    return [name.rpartition("/")[0].rpartition("/")[2] for name in units.facts().weights]


def test_that_stay_equal_are_named():
    first = layers.Dense(8, "relu", kernel_initializer=keras.initializers.Constant(0.1), name="first")
    second = layers.Dense(8, "relu", kernel_initializer="ones", name="second")
    assert seen(first, second, layers.Dense(3, "softmax")) == ["first"]


def test_that_were_not_trained_are_not_named():
    assert seen(layers.Dense(8, kernel_initializer="ones"), layers.Dense(3, "softmax"), steps=0) == []


def test_a_last_layer_of_zeros_is_not_named():
    assert seen(layers.Dense(8, "relu"), layers.Dense(3, "softmax", kernel_initializer="zeros")) == []


def test_a_single_unit_is_not_named():
    assert seen(layers.Dense(1, kernel_initializer="ones"), layers.Dense(3, "softmax")) == []
