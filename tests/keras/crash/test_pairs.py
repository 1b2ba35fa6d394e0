"""The same bug in PyTorch and in Keras: the same rule, and nearly the same sentence."""

import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

import diagnostics  # noqa: E402
from tests.keras.pairs import assert_alike  # noqa: E402

if keras.backend.backend() != "tensorflow":
    pytest.skip("needs Keras on TensorFlow", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
LABELS = np.array([0, 1, 2, 1, 0, 1, 2, 1])
ROWS = [[1, 2, 3], [1, 2]]


def fit(target, outputs, loss):
    model = keras.Sequential([keras.layers.Dense(outputs)])
    model.compile("adam", loss, run_eagerly=True)
    model.fit(X, target, verbose=0)


def indices():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def flat_in_keras():
    class Flat(keras.layers.Layer):
        def call(self, x):
            return tf.reshape(x, [-1, 2])

    model = keras.Sequential([Flat(), keras.layers.Dense(3)])
    model.compile("adam", indices(), run_eagerly=True)
    model.fit(X, LABELS, verbose=0)


def detached_in_keras():
    model = keras.Sequential([keras.layers.Dense(3)])
    model.compile("adam", lambda y_true, y_pred: tf.reduce_mean(tf.stop_gradient(y_pred)))
    model.fit(X, LABELS, verbose=0)


def detached_in_torch():
    torch.nn.Linear(4, 3)(torch.tensor(X)).detach().mean().backward()


PAIRS = {
    "labels-out-of-range": (
        lambda: F.cross_entropy(torch.randn(8, 2), torch.tensor(LABELS)),
        lambda: fit(LABELS, 2, indices()),
        1.0,
    ),
    "labels below zero": (
        lambda: F.cross_entropy(torch.randn(8, 3), torch.tensor(LABELS) - 1),
        lambda: fit(LABELS - 1, 3, indices()),
        1.0,
    ),
    "broadcast-loss": (
        lambda: F.mse_loss(torch.randn(8, 3), torch.randn(8, 2)),
        lambda: fit(X[:, :2], 3, "mse"),
        1.0,
    ),
    "one-hot targets": (
        lambda: F.cross_entropy(torch.randn(8, 3), torch.eye(3, dtype=torch.long)[LABELS]),
        lambda: fit(np.eye(3)[LABELS], 3, indices()),
        1.0,
    ),
    "a lost batch axis": (
        lambda: F.cross_entropy(torch.randn(16, 3), torch.tensor(LABELS)),
        flat_in_keras,
        1.0,
    ),
    "ragged-batch": (
        lambda: torch.stack([torch.tensor(row) for row in ROWS]),
        lambda: list(
            tf.data.Dataset.from_generator(
                lambda: iter(ROWS), output_signature=tf.TensorSpec((None,), tf.int32)
            ).batch(2)
        ),
        0.6,  # TensorFlow says which component it is, PyTorch does not
    ),
    "token-ids-out-of-range": (
        lambda: torch.nn.Embedding(10, 4)(torch.tensor([[1, 12]])),
        lambda: keras.layers.Embedding(10, 4)(np.array([[1, 12]])),
        0.5,  # the frames hold all ids in PyTorch; TensorFlow's message names one
    ),
    "no-gradient": (detached_in_torch, detached_in_keras, 0.4),  # backward() is PyTorch's, variables are Keras'
}


def finding(run):
    try:
        run()
    except Exception as error:
        (found,) = diagnostics.explain(error).findings
        return found
    raise AssertionError("it did not fail")


@pytest.mark.parametrize("pair", PAIRS)
def test_one_rule_and_nearly_one_sentence(pair):
    in_torch, in_keras, alike = PAIRS[pair]
    assert_alike(finding(in_torch), finding(in_keras), at_least=alike)
