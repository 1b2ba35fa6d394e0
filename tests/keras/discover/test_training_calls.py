"""Calls of a fitted model in training mode."""

import numpy as np
import pytest

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.keras.discover.training_calls import TrainingCalls
from tests.keras.fits import keras, layers, tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 6)).astype("float32")
Y = (X[:, :1] > 0).astype("float32")


def made(*middle):
    model = keras.Sequential([layers.Input((6,)), layers.Dense(8, "relu"), *middle, layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy")
    return model


def under_tape(model):
    with tf.GradientTape():
        model(X, training=True)


@pytest.fixture
def calls():
    faults = []
    probe = TrainingCalls(FaultGuard(on_fault=faults.append))
    yield probe
    probe.close()
    assert faults == []


def found(calls, model, use):
    calls.fit_begins(model)
    model(X, training=True)  # as a callback may
    calls.fit_ended(model, "the training")
    use(model)
    return calls.facts()


def test_are_counted_with_the_layers_that_notice(calls):
    model = made(layers.BatchNormalization(name="norm"), layers.Dropout(0.3, name="drop"))

    def use(model):
        for start in range(0, 80, 20):
            model(X[start : start + 20], training=True)

    ((training, facts),) = found(calls, model, use)
    assert training == "the training"
    assert (facts.passes, facts.rows, facts.repeated) == (4, 80, False)
    assert (facts.layers, facts.keeps_statistics) == (("norm", "drop"), (True, False))


def test_of_the_same_rows_are_repeated(calls):
    ((_, facts),) = found(calls, made(layers.Dropout(0.3)), lambda model: [model(X, training=True) for _ in "ab"])
    assert facts.repeated


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model(X, training=False),
        lambda model: model(X),
        under_tape,
        lambda model: (model(X, training=True), model.evaluate(X, Y, verbose=0)),
        lambda model: (model(X, training=True), model(X, training=False)),
        lambda model: keras.Model(inputs := keras.Input((6,)), model(inputs, training=True)),
    ],
    ids=["inference", "default", "tape", "before evaluate", "before inference", "part of another model"],
)
def test_in_other_modes_and_places_do_not_count(calls, use):
    assert found(calls, made(layers.Dropout(0.3)), use) == []


@pytest.mark.parametrize("middle", [layers.BatchNormalization(trainable=False), layers.Dropout(0), layers.ReLU()])
def test_of_models_that_do_not_notice_do_not_count(calls, middle):
    assert found(calls, made(middle), lambda model: model(X, training=True)) == []


def test_before_the_next_fit_are_forgotten(calls):
    model = made(layers.Dropout(0.3))
    assert found(calls, model, lambda model: model(X, training=True))
    calls.fit_begins(model)
    assert calls.facts() == []
