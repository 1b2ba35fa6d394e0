"""The tap through which `fit`'s batches are seen."""

import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

from diagnostics.probes.keras_batches import Tap
from tests.keras_watched import BATCH, FEATURE_ROWS, LABELS, functional


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
        tap = Tap(model, seen.append, losses.append)
        dataset = tf.data.Dataset.from_tensor_slices((FEATURE_ROWS, LABELS)).batch(BATCH).take(3)
        for _epoch in range(2):
            batches = iter(dataset)
            for _step in range(3):
                tap.run(batches)
        expected = [FEATURE_ROWS[start : start + BATCH] for start in range(0, 3 * BATCH, BATCH)] * 2
        assert [batch[0].numpy().tobytes() for batch in seen] == [rows.tobytes() for rows in expected]
        assert np.isfinite([float(logs["loss"]) for logs in losses]).all()
        assert tap.why_not == ""

    def test_keeps_no_epochs_iterator_past_the_next_ones_first_batch(self, model):
        tap = Tap(model, lambda batch: None, lambda logs: None)
        dataset = tf.data.Dataset.from_tensor_slices((FEATURE_ROWS, LABELS)).batch(BATCH)
        first, second = iter(dataset), iter(dataset)
        watched = weakref.ref(first)
        tap.run(first)
        del first
        assert watched() is not None  # drawn from, and may be again
        tap.run(second)
        for thread in threading.enumerate():
            if thread.name == "diagnostics-lets-go":
                thread.join(60)
        assert watched() is None

    def test_lets_go_of_it_by_itself_where_no_thread_can_be_started(self, model, monkeypatch):
        def refused(thread):
            raise RuntimeError("can't create new thread at interpreter shutdown")

        tap = Tap(model, lambda batch: None, lambda logs: None)
        batches = iter(tf.data.Dataset.from_tensor_slices((FEATURE_ROWS, LABELS)).batch(BATCH))
        watched = weakref.ref(batches)
        tap.run(batches)
        del batches
        monkeypatch.setattr(threading.Thread, "start", refused)
        tap.close()
        assert watched() is None
