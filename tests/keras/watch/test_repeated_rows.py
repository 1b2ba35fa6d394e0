"""The targets of rows that come again in a `fit`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import diagnostics
from diagnostics.collectors.keras.batch import take_rows
from diagnostics.collectors.shared.repeated_rows import RowMemory

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 6)).astype("float32")
LABELS = RNG.integers(0, 10, 160)


def zipped(shuffled_first):
    inputs, labels = (tf.data.Dataset.from_tensor_slices(part) for part in (X, LABELS))
    if shuffled_first:
        return tf.data.Dataset.zip((inputs.shuffle(160, seed=1), labels.shuffle(160, seed=2))).batch(20)
    return tf.data.Dataset.zip((inputs, labels)).shuffle(160, seed=1).batch(20)


class OwnStep(keras.Sequential):
    """Takes inputs and labels for two sets of rows that are no pairs."""

    def train_step(self, data):
        return super().train_step(data)


class OwnLoss(keras.Sequential):
    def compute_loss(self, *arguments, **options):
        return super().compute_loss(*arguments, **options)


def named(rows, kind=keras.Sequential):
    keras.utils.set_random_seed(0)
    model = kind([keras.Input((6,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callback = diagnostics.KerasCallback()
    model.fit(rows, epochs=6, verbose=0, callbacks=[callback])
    return "labels-unrelated" in {finding.rule for finding in callback.report().findings}


def test_parts_that_are_shuffled_before_they_are_zipped_are_named():
    assert named(zipped(shuffled_first=True))


def test_parts_that_are_zipped_first_are_not():
    assert not named(zipped(shuffled_first=False))


@pytest.mark.parametrize("kind", [OwnStep, OwnLoss])
def test_models_with_a_step_or_loss_of_their_own_may_want_rows_that_are_no_pairs(kind):
    assert not named(zipped(shuffled_first=True), kind)


def test_batches_with_sample_weights_or_without_labels_are_left():
    memory = RowMemory()
    for _ in range(4):
        memory.epoch_begins()
        for batch in ((X, RNG.permutation(LABELS), np.ones(160)), (X,), X, (X, LABELS, LABELS, LABELS)):
            take_rows(memory, batch)
    assert memory.facts() is None


def test_several_inputs_make_one_row():
    memory = RowMemory()
    for _ in range(4):
        memory.epoch_begins()
        take_rows(memory, ({"left": X, "right": RNG.permutation(X)}, LABELS))
    assert memory.facts() is None
