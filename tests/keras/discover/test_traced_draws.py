"""Random numbers that Python code draws while TensorFlow traces it, as a script under `diagnose run` does."""

import random

import numpy as np
import pytest

from diagnostics.collectors.keras import internals
from tests.keras.fits import findings_of, keras, layers, tf

RNG = np.random.default_rng(0)
HELD = np.random.default_rng(1)
OLD = np.random.RandomState(2)
X = RNG.normal(size=(64, 6)).astype("float32")
Y = X[:, :1]


def found(script):
    """Return the evidence of a script about numbers that are repeated."""
    return [
        (f.evidence["generator"], f.evidence["for"], f.evidence["runs"])
        for f in findings_of(script, "repeated-worker-randomness")
    ]


def loop(noise, steps=12, between=lambda: None):
    """Train in a `tf.function` that adds what `noise` returns to the inputs."""
    model = keras.Sequential([layers.Input((6,)), layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x + noise(), training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    for _ in range(steps):
        between()
        step(tf.constant(X), tf.constant(Y))


def of_numpy():
    return np.random.normal(size=6).astype("float32")


def of_python():
    return random.gauss(0, 1)


def of_generator():
    return HELD.normal(size=6).astype("float32")


def of_old():
    return OLD.normal(size=6).astype("float32")


def of_tensorflow():
    return tf.random.normal((6,), seed=7)


def called_back():
    return tf.reshape(tf.numpy_function(of_numpy, [], tf.float32), (6,))


@pytest.mark.parametrize(
    ("noise", "generator"),
    [
        (of_numpy, "numpy.random"),
        (of_python, "random"),
        (of_generator, "a numpy Generator"),
        (of_old, "a numpy RandomState"),
    ],
)
def test_a_loop_that_repeats_its_noise(noise, generator):
    assert found(lambda: loop(noise)) == [(generator, "call", 8)]


def test_rows_drawn_between_the_steps_do_not_hide_it(monkeypatch):
    # The graphs of earlier tests may live on, and with them functions that they call back.
    monkeypatch.setattr(internals.script_ops, "_py_funcs", type(internals.script_ops._py_funcs)())
    assert found(lambda: loop(of_numpy, between=of_numpy)) == [("numpy.random", "call", 8)]


@pytest.mark.parametrize("noise", [of_tensorflow, called_back])
def test_noise_that_differs_from_step_to_step(noise):
    assert found(lambda: loop(noise)) == []


def test_too_few_steps_to_repeat_anything():
    assert found(lambda: loop(of_numpy, steps=4)) == []


def test_a_step_whose_seed_is_drawn():
    assert found(lambda: loop(lambda: tf.random.normal((6,), seed=random.randint(100, 999)))) == []


def mapped(change, rows=64):
    model = keras.Sequential([layers.Input((6,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.data.Dataset.from_tensor_slices((X[:rows], Y[:rows])).map(change).batch(4), verbose=0)


def shifted(x, y):
    return x + of_generator(), y


def test_elements_that_get_the_same_noise():
    assert found(lambda: mapped(shifted)) == [("a numpy Generator", "element", 64)]


def test_a_dataset_of_few_elements():
    assert found(lambda: mapped(shifted, rows=4)) == []


def test_elements_that_get_noise_of_their_own():
    assert found(lambda: mapped(lambda x, y: (x + called_back(), y))) == []


def test_a_map_that_nothing_is_trained_on():
    assert found(lambda: list(tf.data.Dataset.from_tensor_slices((X, Y)).map(shifted))) == []


class Features(layers.Layer):
    def build(self, shape):
        self.directions = OLD.normal(size=(shape[-1], 8)).astype("float32")

    def call(self, inputs):
        return tf.cos(inputs @ self.directions)


class Noisy(layers.Layer):
    def call(self, inputs):
        return inputs + of_old()


def fit(layer, **options):
    model = keras.Sequential([layer(), layers.Dense(1)])
    model.compile("sgd", "mse", **options)
    model.fit(X, Y, batch_size=4, verbose=0)


def test_a_layer_that_repeats_its_noise_in_fit():
    assert found(lambda: fit(Noisy)) == [("a numpy RandomState", "call", 8)]


def test_a_layer_that_draws_its_weights():
    assert found(lambda: fit(Features)) == []


def test_a_step_without_a_graph_draws_each_time():
    assert found(lambda: fit(Noisy, run_eagerly=True)) == []
