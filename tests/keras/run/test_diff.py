"""Compares real fits that differ in one thing."""

import keras
import numpy as np
import pytest

import diagnostics
from diagnostics.report.diff import diff_reports


def fit(path, seed=0, rate=0.01, dropout=0.0, backwards=False):
    keras.utils.set_random_seed(seed)
    x = np.arange(512).reshape(128, 4).astype("float32") / 512
    y = (x.sum(1) > 1).astype("int64")
    if backwards:
        x, y = x[::-1].copy(), y[::-1].copy()
    layers = keras.layers.Dense(16, "relu", name="a"), keras.layers.Dropout(dropout, name="b")
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(2, name="c")])
    model.compile(keras.optimizers.Adam(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callback = diagnostics.KerasCallback(quiet=True)
    model.fit(x, y, batch_size=16, shuffle=False, verbose=0, callbacks=[callback])
    return callback.report().save(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "No difference."),
        ({"seed": 1}, "The runs differ in one seed (seed of "),
        ({"rate": 0.02}, "The runs differ in one setting (learning_rate: 0.01 → 0.02). The losses"),
        ({"dropout": 0.5}, "The runs differ in one setting (rate of layer b: 0 → 0.5)."),
        ({"backwards": True}, "The runs train on the same rows in another order; all before that is the same."),
    ],
    ids=["nothing", "seed", "setting", "layer", "order"],
)
def test_the_difference_is_named(tmp_path, change, said):
    found = diff_reports(fit(tmp_path / "a.json"), fit(tmp_path / "b.json", **change))
    assert found.verdict.startswith(said), found
