"""Layers of Keras that a model makes again each time that it is called."""

import numpy as np

from diagnostics.collectors.keras.dependence.subject import KerasSubject, keep_batch
from diagnostics.collectors.keras.dependence.vanishing_layers import vanishing_layers
from tests.keras.fits import keras, layers

ROWS = np.random.default_rng(0).normal(size=(8, 6)).astype("float32")


def vanished(inner):
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = None
            self.out = layers.Dense(1)

        def call(self, inputs):
            return self.out(inner(self, inputs))

    model = Model()
    model(ROWS)
    before = [np.asarray(variable) for variable in model.variables]
    facts = vanishing_layers(KerasSubject(model, keep_batch(ROWS, np.zeros(8), None)))
    assert all((np.asarray(now) == then).all() for now, then in zip(model.variables, before, strict=True))
    return {} if facts is None else dict(facts.vanished)


def test_a_dense_layer_of_the_call_vanishes():
    assert vanished(lambda _model, x: layers.Dense(4, activation="relu")(x)) == {"Dense": 24}


def test_a_stack_of_the_call_vanishes():
    assert vanished(lambda _model, x: keras.Sequential([layers.Dense(4), layers.Dense(5)])(x)) == {"Dense": 44}


def test_layers_without_weights_may_be_made_in_the_call():
    assert vanished(lambda _model, x: layers.Dropout(0.2)(layers.ReLU()(x))) == {}


def test_a_layer_that_is_made_once_and_kept_stays():
    def kept(model, x):
        if model.hidden is None:
            model.hidden = layers.Dense(4)
        return model.hidden(x)

    assert vanished(kept) == {}


def test_a_layer_of_another_model_stays():
    other = layers.Dense(4)
    assert vanished(lambda _model, x: other(x)) == {}


def test_random_features_that_are_frozen_are_meant():
    assert vanished(lambda _model, x: layers.Dense(4, trainable=False)(x)) == {}
