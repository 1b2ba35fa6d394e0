"""The answers of a trained model to rows of its data, output by output."""

import keras
import numpy as np
import pytest

from diagnostics.collectors.keras.data import KerasData
from diagnostics.collectors.keras.examine.kept_outputs import keep_outputs
from diagnostics.collectors.keras.post_run.final_answers import final_answers
from tests.keras.fits import layers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5)).astype("float32")
PRICE, STYLE = 1000 + 50 * X[:, 0], X[:, 1:4].argmax(1)


def two_outputs(names=("price", "style"), **options):
    inputs = keras.Input((5,))
    hidden = layers.Dense(4)(inputs)
    outputs = [layers.Dense(1, name="price")(hidden), layers.Dense(3, name="style")(hidden)]
    model = keras.Model(inputs, dict(zip(names, outputs, strict=True)) if names else outputs)
    losses = {"price": "mse", "style": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
    model.compile("adam", losses, **options)
    return model


def scored(model, data):
    kept = keep_outputs(model, KerasData(data))
    return None if kept is None else final_answers(model, kept, deadline=float("inf"))


@pytest.mark.parametrize("names", [("price", "style"), None], ids=["by name", "in order"])
def test_each_output_is_compared_with_a_constant_answer(names):
    model = two_outputs(names)
    targets = {"price": PRICE, "style": STYLE}
    model.fit(X, targets, epochs=1, batch_size=50, verbose=0)
    found = scored(model, (X, targets))
    price, style = sorted(found.outputs, key=lambda one: one.name)
    assert (found.steps, found.keeps_statistics) == (4, False)
    assert (price.name, price.kind, price.rows) == ("price", "mean_squared_error", 200)
    assert price.constant_error == pytest.approx(PRICE.var(), rel=1e-3)
    answers = np.asarray(keras.tree.flatten(model(X))[0])[:, 0]
    assert price.error == pytest.approx(np.square(answers - PRICE).mean(), rel=1e-3)
    assert price.target_mean == pytest.approx(PRICE.mean())
    assert price.fit is not None
    shares = np.bincount(STYLE) / 200
    assert style.constant_error == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-6)


def test_an_output_of_a_loss_of_the_users_is_left_out():
    model = two_outputs()
    model.compile("adam", {"price": lambda y, p: keras.ops.mean(p), "style": "sparse_categorical_crossentropy"})
    model.fit(X, {"price": PRICE, "style": STYLE}, epochs=1, verbose=0)
    found = scored(model, (X, {"price": PRICE, "style": STYLE}))
    assert [one.name for one in found.outputs] == ["style"]


@keras.saving.register_keras_serializable("tests")
class Reversal(keras.layers.Layer):
    def call(self, inputs):
        return -inputs + 2 * keras.ops.stop_gradient(inputs)


def test_nothing_is_kept_where_a_layer_is_the_users():
    inputs = keras.Input((5,))
    model = keras.Model(inputs, layers.Dense(1)(Reversal()(inputs)))
    model.compile("adam", "mse")
    assert keep_outputs(model, KerasData((X, PRICE))) is None


@pytest.mark.parametrize("weights", [{"price": 0.0, "style": 1.0}, {"price": -1.0, "style": 1.0}])
def test_nothing_is_kept_where_an_output_is_switched_off(weights):
    model = two_outputs(loss_weights=weights)
    assert keep_outputs(model, KerasData((X, {"price": PRICE, "style": STYLE}))) is None


def test_nothing_is_kept_of_few_rows_or_weighted_ones():
    few = X[:50], {"price": PRICE[:50], "style": STYLE[:50]}
    assert keep_outputs(two_outputs(), KerasData(few)) is None
    one = keras.Sequential([keras.Input((5,)), layers.Dense(1)])
    one.compile("adam", "mse")
    assert keep_outputs(one, KerasData((X, PRICE, np.ones(200)))) is None
    assert keep_outputs(one, KerasData((X, PRICE))) is not None
