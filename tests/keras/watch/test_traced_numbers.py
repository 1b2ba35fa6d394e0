"""Python numbers that a `fit` traces, and that a callback changes."""

import keras
import numpy as np
import pytest

import diagnostics

RNG = np.random.default_rng(0)
X = RNG.normal(size=(96, 4)).astype("float32")
Y = X[:, :1] * 2


class Weighted(keras.Model):
    """The loss has a second term, whose weight is a Python number or a variable."""

    def __init__(self, weight):
        super().__init__()
        self.out, self.weight = keras.layers.Dense(1), weight
        self.shown = 0.0

    def call(self, x):
        return self.out(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return keras.ops.mean((y - y_pred) ** 2) + self.penalty(y_pred)

    def penalty(self, y_pred):
        return self.weight * keras.ops.mean(keras.ops.abs(y_pred))


def found(model, change, eagerly=False, epochs=4):
    keras.utils.set_random_seed(0)
    model.compile("adam", "mse", run_eagerly=eagerly)
    callback = diagnostics.KerasCallback()
    changes = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: change(model, epoch / 4))
    model.fit(X, Y, batch_size=20, epochs=epochs, verbose=0, validation_data=(X, Y), callbacks=[callback, changes])
    report = callback.report()
    assert not report.faults
    return {finding.rule: finding for finding in report.findings}.get("setting-without-effect")


def set_weight(model, value):
    model.weight = value


def test_a_weight_that_a_callback_raises_is_named():
    finding = found(Weighted(0.0), set_weight)
    assert (finding.severity, finding.evidence["name"]) == ("warning", "weight")
    assert "15 of the 20 steps still used 0" in finding.message


def test_a_rate_of_dropout_is_named():
    def change(model, value):
        model.layers[0].rate = 0.5 * value

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dropout(0.0), keras.layers.Dense(1)])
    assert found(model, change).evidence["name"] == "rate"


@pytest.mark.parametrize(
    ("weight", "change", "options"),
    [
        (0.5, lambda model, value: setattr(model, "shown", value), {}),  # nothing traced reads it
        (0.0, set_weight, {"eagerly": True}),
        (0.0, set_weight, {"epochs": 2}),
        (0.5, lambda model, value: None, {}),
    ],
)
def test_silent_where_nothing_is_lost(weight, change, options):
    assert found(Weighted(weight), change, **options) is None


def test_silent_on_a_variable():
    variable = keras.Variable(0.0, trainable=False)
    assert found(Weighted(variable), lambda model, value: model.weight.assign(value)) is None
