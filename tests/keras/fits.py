"""Small Keras models on TensorFlow, compiled in each way that changes what an error looks like, and their fits."""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
if keras.backend.backend() != "tensorflow":
    pytest.skip("needs Keras on TensorFlow", allow_module_level=True)

from diagnostics.run.observer import ScriptObserver  # noqa: E402
from tests.support.crashes import failure  # noqa: E402

layers = keras.layers
GRAPH, EAGER, XLA = {}, {"run_eagerly": True}, {"jit_compile": True}
X = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
LABELS = np.array([0, 1, 2, 1, 0, 1, 2, 1])


def indices():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def sequential(outputs):
    return keras.Sequential([layers.Input((4,)), layers.Dense(outputs)])


class Subclassed(keras.Model):
    def __init__(self, outputs):
        super().__init__()
        self.head = layers.Dense(outputs)

    def call(self, inputs):
        return self.head(inputs["x"] if isinstance(inputs, dict) else inputs)


def fit(model, *data, loss=None, mode=GRAPH, **options):
    """Compile and fit; the failure is the answer."""
    model.compile("adam", loss or indices(), **mode)
    return failure(lambda: model.fit(*data, verbose=0, **options))


def batches(*structure):
    return tf.data.Dataset.from_tensor_slices(*structure).batch(4)


def findings_of(script, rule):
    """Return the findings of a rule about a script that is observed as under `diagnose run`."""
    run = ScriptObserver()
    try:
        script()
    finally:
        run.close()
    assert run.faults == []
    return [f for report in [*run.examined, *run.watched()] for f in report.findings if f.rule == rule]
