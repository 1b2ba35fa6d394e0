"""Layers of Keras that no call in training mode has reached."""

import numpy as np

from diagnostics.collectors.keras.post_run.unreached_modes import never_in_training, still_statistics
from diagnostics.facts.layers import StillStatistics
from tests.keras.fits import keras, layers

ROWS = np.ones((4, 3), "float32")


def model(*hidden):
    built = keras.Sequential([keras.Input((3,)), *hidden, layers.Dense(1)])
    built.compile("sgd", "mse")
    return built


def test_calls_as_at_inference_leave_dropout_and_batch_norm_as_they_were():
    asked = model(layers.Dropout(0.5, name="drop"), layers.BatchNormalization(name="norm"))
    asked(ROWS)
    assert never_in_training(asked, asked.optimizer).layers == ("drop", "norm")
    asked(ROWS, training=True)
    assert never_in_training(asked, asked.optimizer) is None


def test_bases_and_layers_without_modes_do_not_count():
    base = keras.Sequential([keras.Input((3,)), layers.BatchNormalization()])
    assert never_in_training(model(base), None) is None
    assert never_in_training(model(layers.Dense(4)), None) is None
    assert never_in_training(model(layers.Dropout(0.0)), None) is None


def test_statistics_that_a_momentum_of_1_keeps_are_found():
    trained = model(layers.BatchNormalization(momentum=1.0, name="norm"))
    trained.fit(ROWS, ROWS[:, :1], epochs=2, verbose=0)
    assert still_statistics(trained, trained.optimizer) == StillStatistics(("norm",), 2)
    assert never_in_training(trained, trained.optimizer) is None


def test_other_statistics_are_not():
    usual = model(layers.BatchNormalization())
    assert still_statistics(usual, usual.optimizer) is None
    loaded = model(layers.BatchNormalization(momentum=1.0, moving_mean_initializer="ones"))
    assert still_statistics(loaded, loaded.optimizer) is None
    frozen = model(layers.BatchNormalization(momentum=1.0, trainable=False))
    assert still_statistics(frozen, frozen.optimizer) is None
