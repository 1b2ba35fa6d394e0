"""The last layer of a Keras model, its loss and its targets, as questions about Keras combine them."""

import numpy as np
import pytest

import diagnostics
from tests.keras.programs import keras, layers
from tests.support.findings import all_findings

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 96
X = np.random.default_rng(0).normal(size=(ROWS, 8)).astype("float32")
CLASS = X[:, :4].argmax(1)
ONE_HOT = keras.utils.to_categorical(CLASS, 4)
BINARY = (X[:, 0] > 0).astype("float32")
SEVERAL = (X[:, :4] > 0).astype("float32")
PIXELS = (np.abs(X) * 60).clip(0, 255).repeat(10, axis=1)


def findings(units, activation, loss, y, x=X):
    """Return the severities by rule, for layers that are added one by one."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential()
    model.add(keras.Input(x.shape[1:]))
    model.add(layers.Dense(32, activation="relu"))
    model.add(layers.Dense(units, activation=activation))
    model.compile(keras.optimizers.Adam(1e-3), loss)
    report = diagnostics.examine(model, (x, y))
    assert report.faults == ()
    return {finding.rule: finding.severity for finding in all_findings(report)}


@pytest.mark.parametrize(
    ("units", "activation", "loss", "y", "rule", "severity"),
    [
        (1, "softmax", "binary_crossentropy", BINARY, "ignores-input", "error"),
        (1, "sigmoid", "categorical_crossentropy", BINARY, "targets-out-of-reach", "error"),
        (1, "sigmoid", "binary_crossentropy", CLASS, "targets-out-of-reach", "error"),
        (4, "softmax", "binary_crossentropy", SEVERAL, "targets-out-of-reach", "error"),
        (4, "softmax", "mse", SEVERAL, "targets-out-of-reach", "error"),
        (4, "softmax", "sparse_categorical_crossentropy", CLASS / 255, "targets-out-of-reach", "error"),
        (4, "relu", "categorical_crossentropy", ONE_HOT, "logits-as-probabilities", "error"),
        (4, "relu", "sparse_categorical_crossentropy", CLASS, "logits-as-probabilities", "error"),
        (1, None, "binary_crossentropy", BINARY, "logits-as-probabilities", "error"),
        (1, "tanh", "binary_crossentropy", BINARY, "logits-as-probabilities", "error"),
        (4, "sigmoid", "categorical_crossentropy", ONE_HOT, "logits-as-probabilities", "warning"),
    ],
)
def test_last_activation_is_held_against_targets_and_loss(units, activation, loss, y, rule, severity):
    assert findings(units, activation, loss, y).get(rule) == severity


@pytest.mark.parametrize(
    ("units", "activation", "loss", "y"),
    [
        (4, "softmax", "categorical_crossentropy", ONE_HOT),
        (4, "softmax", "sparse_categorical_crossentropy", CLASS.astype("float32")),
        (4, "softmax", "mse", ONE_HOT),
        (4, "sigmoid", "binary_crossentropy", SEVERAL),
        (4, "softmax", keras.losses.CategoricalCrossentropy(label_smoothing=0.1), ONE_HOT),
        (1, "sigmoid", "binary_crossentropy", BINARY),
        (1, None, keras.losses.BinaryCrossentropy(from_logits=True), BINARY[:, None]),
        (1, None, "mse", X[:, :1] * X[:, 1:2]),
    ],
)
def test_fitting_ones_are_not_reported(units, activation, loss, y):
    assert findings(units, activation, loss, y) == {}


@pytest.mark.parametrize(
    ("units", "activation", "loss", "y"),
    [
        (4, "softmax", "categorical_crossentropy", ONE_HOT),
        (1, "sigmoid", "binary_crossentropy", BINARY),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_unscaled_pixels_are_found_for_one_hot_and_binary_targets(units, activation, loss, y, dtype):
    found = findings(units, activation, loss, y, PIXELS.round().astype(dtype))
    assert found.keys() >= {"unscaled-inputs", "initial-loss-off"}


def test_scale_is_not_blamed_where_batch_norm_removes_it():
    keras.utils.set_random_seed(0)
    wide = keras.initializers.RandomNormal(stddev=1.0)
    hidden = [layers.Dense(32), layers.BatchNormalization(), layers.ReLU()]
    model = keras.Sequential([keras.Input((80,)), *hidden, layers.Dense(4, kernel_initializer=wide)])
    model.compile("adam", keras.losses.CategoricalCrossentropy(from_logits=True))
    found = {f.rule: f for f in all_findings(diagnostics.examine(model, (PIXELS, ONE_HOT)))}
    assert "unscaled-inputs" not in found
    assert "scale" not in str(found["initial-loss-off"].fix)


def test_rare_class_of_one_hot_targets_is_counted():
    rare = keras.utils.to_categorical(X[:, 0] > 1.8, 2)
    assert findings(2, "softmax", "categorical_crossentropy", rare)["class-imbalance"] == "note"


def test_hidden_layers_are_seen_although_each_added_layer_makes_a_new_graph():
    keras.utils.set_random_seed(0)
    model = keras.Sequential()
    model.add(keras.Input((8,)))
    model.add(layers.Dense(64, activation="relu", bias_initializer=keras.initializers.Constant(-50)))
    model.add(layers.Dense(16, activation="tanh"))
    model.add(layers.Dense(4, activation="softmax"))
    model.compile("adam", "categorical_crossentropy")
    found = {finding.rule for finding in all_findings(diagnostics.examine(model, (X, ONE_HOT)))}
    assert "dead-units" in found
