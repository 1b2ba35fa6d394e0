"""Keras models that give back the tokens of an input."""

import numpy as np
import pytest

from diagnostics.collectors.keras.dependence.measure import measure
from diagnostics.collectors.keras.dependence.subject import KerasSubject, keep_batch
from tests.keras.fits import keras, layers

LENGTH, KINDS = 9, 20
TOKENS = np.random.default_rng(0).integers(1, KINDS, size=(12, LENGTH + 1))


class Looked(layers.Layer):
    """Looks up one vector for each token, with one large number."""

    def call(self, tokens):
        return 10 * keras.ops.one_hot(tokens, KINDS)


class Mean(layers.Layer):
    """Adds the mean over the positions, later ones included."""

    def call(self, hidden):
        return hidden + keras.ops.mean(hidden, axis=1, keepdims=True)


def measured(*further, inputs=TOKENS[:, :-1], targets=TOKENS[:, :-1]):
    model = keras.Sequential([keras.Input((LENGTH,), dtype="int32"), Looked(), *further])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return measure(KerasSubject(model, keep_batch(inputs, targets, None)))


def test_targets_that_are_not_shifted_are_copied():
    copied = measured().copy
    assert (copied.share, copied.source, copied.length) == (1.0, None, LENGTH)


@pytest.mark.parametrize(
    ("further", "targets", "why"),
    [
        ((), TOKENS[:, 1:], "the targets are not the tokens"),
        ((Mean(),), TOKENS[:, :-1], "autoencoder"),
        ((layers.ActivityRegularization(1e-3),), TOKENS[:, :-1], "adds a loss"),
    ],
)
def test_other_models_are_not_judged(further, targets, why):
    facts = measured(*further, targets=targets)
    assert facts.copy is None
    assert why in facts.why_not["copy"]
