"""Calls of `train_on_batch` on models that have nothing to train."""

import keras
import numpy as np

from diagnostics.collectors.keras.watch.train_on_batch import LOOKED_AT, FrozenModels
from diagnostics.facts.calls import FrozenCalls


def critic(trainable):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(1)], name="critic")
    model.trainable = trainable
    return model


def called(model, times, models):
    for _ in range(times):
        models.called(model)
    return tuple(models.facts())


def test_a_model_that_is_frozen_each_time_is_counted():
    model = critic(trainable=False)
    assert called(model, 30, FrozenModels()) == (FrozenCalls("critic", 30, 19),)


def test_a_few_calls_of_a_frozen_model_are_left():
    model = critic(trainable=False)
    assert called(model, 19, FrozenModels()) == ()


def test_a_model_that_learns_in_turns_is_left():
    model, models = critic(trainable=True), FrozenModels()
    called(model, 1, models)
    model.trainable = False
    assert called(model, 100, models) == ()


def test_a_model_that_learns_only_later_is_left():
    model, models = critic(trainable=False), FrozenModels()
    assert called(model, LOOKED_AT + 10, models) != ()
    model.trainable = True
    assert called(model, 40, models) == ()


def test_a_model_without_weights_is_left():
    model = keras.Sequential([keras.layers.Dense(3)])
    assert called(model, 30, FrozenModels()) == ()
    model(np.zeros((2, 4)))
    assert model.weights
