"""A script that trains many models and frees each of them has its memory back, watched or not."""

import gc
import time
import weakref

import keras
import numpy as np

from diagnostics.collectors.keras.examine.pipeline import KerasPipeline
from diagnostics.run import looks


def look_at_a_model():
    """Return the second look at a model, of whose examination nothing else is left, and a reference to it."""
    rows = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    pipeline = KerasPipeline(model, (rows, np.arange(32) % 2))
    for stage in (pipeline.dataset, pipeline.batch, pipeline.forward):
        list(stage())
    return looks.of_keras(model, pipeline), weakref.ref(model)


def test_the_second_look_holds_no_large_model(monkeypatch):
    monkeypatch.setattr(looks, "LARGEST_HELD", 0)
    look, freed = look_at_a_model()
    keras.backend.clear_session()
    gc.collect()
    assert freed() is None
    assert look(time.monotonic() + 5, lambda: None) == "the script has freed its model"
