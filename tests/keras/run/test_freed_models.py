"""A script that trains many models and frees each of them has its memory back, watched or not."""

import gc
import time
import weakref

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.examine.pipeline import KerasPipeline
from diagnostics.collectors.keras.examine.stateless_copy import KerasCopy
from diagnostics.collectors.shared.overfit_plan import Plan
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


def test_a_trial_frees_the_copy_that_it_trained():
    rows, labels = tf.ones((8, 4)), tf.zeros((8,), tf.int32)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    copy = KerasCopy(model, rows, labels, None)
    copy.run(Plan(0.1, theirs=False, factor=1.0, steps=2, enough=None), None)
    (learner,) = copy._learners.values()
    handles = [variable.value.handle for variable in learner._own]
    assert [size(handle) for handle in handles] == [8, 2]
    del copy, learner
    gc.collect()
    assert [size(handle) for handle in handles] == [0, 0]
    assert [weights.size for weights in model.get_weights()] == [8, 2]


def size(handle):
    return int(tf.size(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)))
