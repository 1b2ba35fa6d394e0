"""The tap through which `fit`'s batches are seen."""

import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

from diagnostics.collectors.keras.watch.watcher import BatchTap
from diagnostics.collectors.shared.step_clock import StepClock
from tests.keras.watched import BATCH, FEATURE_ROWS, LABELS, functional


@pytest.fixture
def model():
    made = functional()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    made.compile(keras.optimizers.SGD(0.01), loss, jit_compile=False)
    made.make_train_function()
    return made


class TestRun:
    def test_hands_over_every_batch_of_every_epoch(self, model):
        seen, losses = [], []
        tap = BatchTap(model, seen.append, losses.append, StepClock())
        dataset = tf.data.Dataset.from_tensor_slices((FEATURE_ROWS, LABELS)).batch(BATCH).take(3)
        for _epoch in range(2):
            batches = iter(dataset)
            for _step in range(3):
                tap.run(batches)
        expected = [FEATURE_ROWS[start : start + BATCH] for start in range(0, 3 * BATCH, BATCH)] * 2
        assert [batch[0].numpy().tobytes() for batch in seen] == [rows.tobytes() for rows in expected]
        assert np.isfinite([float(logs["loss"]) for logs in losses]).all()
        assert tap.why_not == ""

    def test_keeps_no_iterator_alive(self, model):
        tap = BatchTap(model, lambda batch: None, lambda logs: None, StepClock())
        batches = iter(tf.data.Dataset.from_tensor_slices((FEATURE_ROWS, LABELS)).batch(BATCH))
        watched = weakref.ref(batches)
        tap.run(batches)
        del batches  # Keras lets go of it at the end of an epoch, and what ends with it ends then
        assert watched() is None
        tap.close()
