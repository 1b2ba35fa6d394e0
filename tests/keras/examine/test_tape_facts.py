"""What the look at a GradientTape loop leaves behind."""

import keras
import pytest

from diagnostics.collectors.keras.examine.tape_facts import _restored


@pytest.mark.parametrize("metrics", [[], ["accuracy"]])
def test_compiling_leaves_no_trace(metrics):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    before = {name: (value, list(value) if type(value) is list else None) for name, value in vars(model).items()}
    with _restored(model):
        model.compile("adam", "sparse_categorical_crossentropy", metrics=metrics)
        assert model.compiled
    assert not model.compiled
    assert {name: (v, list(v) if type(v) is list else None) for name, v in vars(model).items()} == before
    assert model.metrics == []
    assert getattr(model, "optimizer", None) is None
