"""A model that takes one batch size alone is examined with batches of that size."""

import pytest

import diagnostics
from diagnostics.collectors.keras.model import fixed_batch_size
from tests.keras.programs import CLASSES, X, Y, keras, layers, mlp, rules, stages

SIZE = 5
IN_TIME = X[:, :, None]  # as 12 steps of one number


def stateful():
    return keras.Sequential(
        [keras.Input(batch_shape=(SIZE, *IN_TIME.shape[1:])), layers.GRU(8, stateful=True), layers.Dense(CLASSES)]
    )


def two_states():
    rows = keras.Input(IN_TIME.shape[1:], batch_size=SIZE)
    hidden = layers.LSTM(8, stateful=True, return_sequences=True)(rows)
    return keras.Model(rows, layers.Dense(CLASSES)(layers.LSTM(8, stateful=True)(hidden)))


def reshaped():
    rows = keras.Input(batch_shape=(SIZE, *IN_TIME.shape[1:]))
    folded = layers.Lambda(lambda given: keras.ops.reshape(given, (SIZE, 12)))(rows)
    return keras.Model(rows, layers.Dense(CLASSES)(layers.Dense(16, activation="relu")(folded)))


@pytest.mark.parametrize("build", [stateful, two_states, reshaped])
@pytest.mark.parametrize("rows", [160, 158], ids=["full batches", "a rest"])
def test_no_other_size_is_tried(build, rows):
    model = build()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    report = diagnostics.examine(model, (IN_TIME[:rows], Y[:rows]))
    assert rules(report) == [], str(report)
    assert stages(report)["forward and loss"] == "passed"
    assert report.stages[1].detail.startswith("5 examples")


def test_any_size_will_do_for_most_models():
    assert fixed_batch_size(mlp()) is None
    assert fixed_batch_size(stateful()) == SIZE
