"""Losses of layers that a step of the user's own never reads, as a script under `diagnose run` makes them."""

import numpy as np
import pytest

from tests.keras.fits import findings_of, keras, layers, tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 6)).astype("float32")
Y = X[:, :1]
L2 = keras.regularizers.L2(0.1)


def found(script):
    """Return the evidence of a script about settings without effect."""
    return [
        (f.evidence["step"], f.evidence["penalized"], f.evidence["added"])
        for f in findings_of(script, "setting-without-effect")
    ]


class Noisy(layers.Layer):
    def call(self, inputs):
        self.add_loss(tf.reduce_mean(tf.square(inputs)))
        return inputs


def stepping(further):
    """Return a model class whose step adds what `further` returns."""

    class Model(keras.Sequential):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x, training=True) - y)) + further(self, x, y)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": loss}

    return Model


def nothing(_model, _x, _y):
    return 0.0


def made(kind=keras.Sequential, regularizer=L2, between=layers.ReLU):
    return kind(
        [
            layers.Input((6,)),
            layers.Dense(8, kernel_regularizer=regularizer, name="first"),
            between(name="between"),
            layers.Dense(1, name="last"),
        ]
    )


def fit(model, **options):
    model.compile("adam", loss="mse")
    model.fit(X, Y, verbose=0, **options)


def loop(model, further=nothing, traced=True):
    optimizer = keras.optimizers.Adam(0.01)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y)) + further(model, x, y)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    step = tf.function(step) if traced else step
    for _ in range(3):
        step(tf.constant(X), tf.constant(Y))


def test_a_regularizer_that_a_train_step_leaves_out():
    assert found(lambda: fit(made(stepping(nothing)))) == [("train_step", ["first"], [])]


def test_an_added_loss_that_a_train_step_leaves_out():
    script = lambda: fit(made(stepping(nothing), None, Noisy))  # noqa: E731
    assert found(script) == [("train_step", [], ["between"])]


def test_an_evaluation_that_reads_them_does_not_train():
    script = lambda: fit(made(stepping(nothing)), validation_data=(X, Y))  # noqa: E731
    assert found(script) == [("train_step", ["first"], [])]


@pytest.mark.parametrize("traced", [True, False])
def test_a_regularizer_that_a_loop_leaves_out(traced):
    assert found(lambda: loop(made(), traced=traced)) == [("loop", ["first"], [])]


@pytest.mark.parametrize("traced", [True, False])
def test_a_loss_of_a_layer_without_weights_that_a_loop_leaves_out(traced):
    assert found(lambda: loop(made(regularizer=None, between=Noisy), traced=traced)) == [("loop", [], ["between"])]


@pytest.mark.parametrize("traced", [True, False])
def test_an_activity_that_a_loop_leaves_out(traced):
    active = layers.Dense(6, activity_regularizer="l2", name="active")
    model = keras.Sequential([layers.Input((6,)), active, made(regularizer=None)])
    assert found(lambda: loop(model, traced=traced)) == [("loop", [], ["active"])]


@pytest.mark.parametrize("traced", [True, False])
def test_a_loss_that_depends_on_frozen_weights_alone_is_not_missed(traced):
    frozen = keras.Sequential([layers.Input((6,)), layers.Dense(6, activity_regularizer="l2"), Noisy()])
    frozen.trainable = False
    model = keras.Sequential([layers.Input((6,)), frozen, layers.Dense(1)])
    assert found(lambda: loop(model, traced=traced)) == []


class Holding(layers.Layer):
    def call(self, inputs):
        self.penalty = tf.reduce_mean(tf.square(inputs))
        self.add_loss(self.penalty)
        return inputs


def held(model, _x, _y):
    return 0.1 * model.get_layer("between").penalty


@pytest.mark.parametrize("traced", [True, False])
def test_a_loop_that_takes_what_a_layer_adds_from_the_layer(traced):
    assert found(lambda: loop(made(regularizer=None, between=Holding), held, traced)) == []


def test_a_train_step_that_takes_what_a_layer_adds_from_the_layer():
    assert found(lambda: fit(made(stepping(held), None, Holding))) == []


def test_a_loss_of_the_model_that_leaves_them_out():
    class Model(keras.Sequential):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return tf.reduce_mean(tf.square(y - y_pred))

    assert found(lambda: fit(made(Model, between=Noisy))) == [("compute_loss", ["first"], ["between"])]


def test_a_loss_of_the_model_that_adds_to_that_of_keras():
    class Model(keras.Sequential):
        def compute_loss(self, *arguments, **options):
            return 2 * super().compute_loss(*arguments, **options)

    assert found(lambda: fit(made(Model, between=Noisy))) == []


def summed(model, _x, _y):
    return tf.add_n(model.losses)


def by_layer(model, _x, _y):
    return sum(loss for layer in model.layers for loss in layer.losses)


def by_hand(model, _x, _y):
    return sum(L2(layer.kernel) for layer in model.layers if getattr(layer, "kernel_regularizer", None))


def computed(model, x, y):
    return model.compute_loss(x, y, model(x, training=True))


@pytest.mark.parametrize("further", [summed, by_layer, by_hand, computed])
def test_a_train_step_that_reads_them(further):
    assert found(lambda: fit(made(stepping(further)))) == []


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("further", [summed, by_layer, by_hand])
def test_a_loop_that_reads_them(further, traced):
    assert found(lambda: loop(made(), further, traced)) == []


def test_keras_reads_them_in_its_own_step():
    assert found(lambda: fit(made())) == []


def test_keras_reads_them_in_train_on_batch():
    def script():
        model = made()
        model.compile("adam", "mse")
        model.train_on_batch(X, Y)

    assert found(script) == []


def test_a_layer_that_penalizes_what_it_computes_calls_no_regularizer_by_hand():
    model = made(stepping(nothing))
    model.add(layers.Dense(1, activity_regularizer="l2", name="active"))
    assert found(lambda: fit(model)) == [("train_step", ["first"], ["active"])]


def test_nothing_is_left_out_where_there_is_nothing():
    assert found(lambda: fit(made(stepping(nothing), None))) == []
    assert found(lambda: loop(made(regularizer=keras.regularizers.L2(0.0)))) == []
    model = keras.Sequential([layers.Dense(1, activity_regularizer=keras.regularizers.L2(0.0))])
    model.build((None, 6))
    assert found(lambda: loop(model)) == []
