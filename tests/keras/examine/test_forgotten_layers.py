"""Layers that were called on what a functional model computes, and that no model has."""

import gc

import numpy as np

from diagnostics.collectors.keras.post_run.forgotten_layers import ForgottenLayersCheck
from tests.keras.fits import keras, layers
from tests.keras.post_run import checked

Dense = layers.Dense


def forgotten_layers(model):
    return checked(ForgottenLayersCheck, model, [np.zeros((8, 4), "float32") for _ in model.inputs])


def names(model):
    found = forgotten_layers(model)
    return [] if found is None else [layer.name for layer in found.layers]


def test_a_layer_whose_result_is_overwritten_is_found():
    inputs = keras.Input((4,), name="rows")
    Dense(8, name="lost")(inputs)
    hidden = Dense(6)(inputs)
    model = keras.Model(inputs, Dense(1)(hidden))
    (layer,) = forgotten_layers(model).layers
    assert (layer.name, layer.kind, layer.called_on, layer.scalars) == ("lost", "Dense", "rows", 40)
    assert not layer.like_an_output


def test_one_like_the_output_is_told_apart():
    inputs = keras.Input((4,))
    hidden = Dense(6)(inputs)
    Dense(1, name="before")(hidden)
    (layer,) = forgotten_layers(keras.Model(inputs, Dense(1)(hidden))).layers
    assert layer.like_an_output


def test_a_model_that_was_made_and_dropped_is_told_apart():
    inputs = keras.Input((4,))
    keras.Model(inputs, Dense(1)(Dense(8)(inputs))).summary(print_fn=len)
    gc.collect()
    found = forgotten_layers(keras.Model(inputs, Dense(1)(Dense(16)(inputs))))
    assert found is None or all(layer.like_an_output for layer in found.layers)


def test_a_branch_that_is_left_out_is_found():
    left, right = keras.Input((4,)), keras.Input((4,))
    Dense(8)(Dense(6, name="branch")(right))
    both = layers.Concatenate()([Dense(6)(left), right])
    (layer,) = forgotten_layers(keras.Model([left, right], Dense(1)(both))).layers
    assert (layer.name, layer.like_an_output) == ("branch", False)


def test_layers_of_other_models_are_not():
    inputs = keras.Input((4,))
    hidden = Dense(6)(inputs)
    code = Dense(2)(hidden)
    encoder, model = keras.Model(inputs, code), keras.Model(inputs, Dense(1)(hidden))
    assert names(model) == []
    assert names(encoder) == []


def test_the_head_of_a_base_that_is_gone_is_not():
    inputs = keras.Input((4,))
    hidden = Dense(6)(inputs)
    head = Dense(3, bias_initializer="ones")  # as if it had learned
    head(hidden)
    assert names(keras.Model(inputs, Dense(1)(hidden))) == []


def test_layers_added_one_by_one_and_shared_ones_are_not():
    one_by_one = keras.Sequential([keras.Input((4,)), Dense(6)])
    one_by_one.add(Dense(1))
    assert names(one_by_one) == []
    left, right, shared = keras.Input((4,)), keras.Input((4,)), Dense(6)
    both = layers.Concatenate()([shared(left), shared(right)])
    assert names(keras.Model([left, right], Dense(1)(both))) == []
    base = keras.Sequential([keras.Input((4,)), Dense(6)])
    inputs = keras.Input((4,))
    assert names(keras.Model(inputs, Dense(1)(base(inputs)))) == []


def test_a_model_that_took_another_apart_is_not():
    old = keras.Sequential([keras.Input((4,)), Dense(6), Dense(3)])
    new = keras.Model(old.inputs, Dense(1)(old.layers[-2].output))
    assert names(new) == []
