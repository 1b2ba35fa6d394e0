"""Pictures that a model is asked about one by one are compared with those that `fit` drew."""

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import keras, layers

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 200, (96, 12, 12, 1)).astype("uint8")
SCALED = BYTES / np.float32(255)
LABELS = np.arange(96) % 2


def found(asked, trained=SCALED):
    """Return the findings about the evaluation of a model that is asked about one batch after the other."""
    keras.utils.set_random_seed(0)
    head = [layers.Flatten(), layers.Dense(1, "sigmoid")]
    model = keras.Sequential([layers.Input(trained.shape[1:]), layers.Conv2D(4, 3), *head])
    model.compile("adam", "binary_crossentropy")
    run = ScriptObserver()
    try:
        model.fit(trained, LABELS, verbose=0)
        for batch in asked:
            model.predict(batch, verbose=0)
    finally:
        run.close()
    assert run.faults == []
    return [f.rule for report in run.examined for f in report.findings if f.stage == "evaluation"]


@pytest.mark.parametrize("count", [1, 3, 40])
def test_names_pictures_that_were_not_divided(count):
    assert found([BYTES[i : i + 1] for i in range(count)]) == ["evaluation-mismatch"]


@pytest.mark.parametrize(
    "asked",
    [
        [SCALED[i : i + 1] for i in range(40)],
        [np.zeros((1, 12, 12, 1))],
        [np.ones((1, 12, 12, 1))],
        [np.full((1, 12, 12, 1), 255.0)],
        [SCALED[:1] * 0.02],
        [RNG.normal(size=(1, 12, 12, 1))],
    ],
    ids=["as in training", "black", "white", "white as bytes", "dark", "noise"],
)
def test_says_nothing_of_pictures_that_training_may_hold(asked):
    assert found(asked) == []
