"""Variables of TensorFlow that a layer of Keras keeps where Keras does not find them."""

import numpy as np
import pytest

from diagnostics.collectors.keras.post_run.untracked_variables import UntrackedVariables
from tests.keras.fits import keras, layers, tf
from tests.keras.post_run import checked

ROWS = np.random.default_rng(0).normal(size=(16, 6)).astype("float32")
Y = ROWS[:, :1]


def drawn(*shape, **options):
    return tf.Variable(tf.random.normal(shape, seed=1), **options)


class Own(layers.Layer):
    def __init__(self, keep, use):
        super().__init__(name="own")
        self.use = use
        keep(self)

    def call(self, inputs):
        return self.use(self, inputs)


def untracked(keep, use, change=lambda layer: None, kind=keras.Sequential):
    layer = Own(keep, use)
    model = kind([layers.Input((6,)), layer, layers.Dense(1)])
    model.compile("adam", "mse")

    def train():
        model.fit(ROWS, Y, verbose=0)
        change(layer)

    facts = checked(UntrackedVariables, model, ROWS, Y, train)
    return {} if facts is None else dict(facts.untracked)


def weight(layer, **options):
    layer.w = drawn(6, 4, **options)


def times(layer, inputs):
    return inputs @ layer.w


def test_a_variable_of_tensorflow_is_found():
    assert untracked(weight, times) == {"own/w": 24}


@pytest.mark.parametrize("private", ["w", "_w"])
def test_in_a_list_as_well(private):
    def keep(layer):
        setattr(layer, private, [drawn(6, 5), drawn(5, 4)])

    def use(layer, inputs):
        first, second = getattr(layer, private)
        return inputs @ first @ second

    assert untracked(keep, use) == {f"own/{private}[0]": 30, f"own/{private}[1]": 20}


def test_in_a_dict_as_well():
    def keep(layer):
        layer.parts = {"w": drawn(6, 4)}

    assert untracked(keep, lambda layer, inputs: inputs @ layer.parts["w"]) == {"own/parts['w']": 24}


def test_a_weight_of_keras_is_tracked():
    def keep(layer):
        layer.w = layer.add_weight(shape=(6, 4))

    assert untracked(keep, times) == {}


def test_one_that_is_not_trainable_is_meant():
    assert untracked(lambda layer: weight(layer, trainable=False), times) == {}


def test_one_that_the_answers_do_not_depend_on_is_left_out():
    assert untracked(weight, lambda _layer, inputs: inputs) == {}


def test_one_that_somebody_changes_is_left_out():
    assert untracked(weight, times, lambda layer: layer.w.assign_add(tf.ones((6, 4)))) == {}


def test_a_number_may_be_one_that_a_callback_sets():
    def keep(layer):
        layer.w = tf.Variable(0.5)

    assert untracked(keep, lambda layer, inputs: inputs * layer.w) == {}


def test_a_step_of_the_users_own_may_train_it():
    class Stepping(keras.Sequential):
        def train_step(self, data):
            return super().train_step(data)

    assert untracked(weight, times, kind=Stepping) == {}
