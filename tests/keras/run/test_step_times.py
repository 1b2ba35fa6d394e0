"""Where the time of a step of `fit` goes: data that sleeps, and their shares with wide margins."""

import time

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import indices, keras, layers, tf

STEPS, BATCH_S = 30, 0.15  # to wait for a batch takes longer than a step of a busy machine


def read(_number=0):
    time.sleep(BATCH_S)
    return np.random.default_rng(0).normal(size=(8, 6)).astype("float32"), np.arange(8) % 3


class Rows(keras.utils.PyDataset):
    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        return read()


def pipeline():
    def load(number):
        inputs, labels = tf.numpy_function(read, [number], [tf.float32, tf.int64])
        return tf.ensure_shape(inputs, (8, 6)), tf.ensure_shape(labels, (8,))

    return tf.data.Dataset.range(STEPS).map(load)


def times_of(data, **options):
    run = ScriptObserver()
    try:
        model = keras.Sequential([layers.Input((6,)), layers.Dense(3)])
        model.compile("sgd", indices())
        model.fit(data, verbose=0, **options)
    finally:
        run.close()
    assert run.faults == []
    return run.watched()[-1].time


@pytest.mark.parametrize(("make", "kind"), [(Rows, "PyDataset"), (pipeline, "tf.data")])
def test_slow_data_shows_as_waiting(make, kind):
    times = times_of(make())
    assert (times.steps, times.batches, times.source.kind) == (STEPS - 5, STEPS - 5, kind)
    assert times.share("loader") > 0.5
    assert set(times.seconds) == {"loader", "step", "diagnostics", "rest"}
    if kind == "PyDataset":
        assert (times.source.workers, times.source.items.function) == (1, "Rows.__getitem__")
    else:
        assert (times.source.prefetches, times.source.caches) == (False, False)


def test_what_was_read_ahead_is_known():
    assert times_of(pipeline().cache().prefetch(2), epochs=2).source.prefetches


def test_a_slow_callback_is_the_rest_and_an_evaluation_none():
    rest = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: time.sleep(BATCH_S),
        on_test_batch_end=lambda batch, logs: time.sleep(4 * BATCH_S),
    )
    rows = np.zeros((64, 6), "float32"), np.zeros(64)
    times = times_of(rows[0], y=rows[1], batch_size=8, epochs=4, callbacks=[rest], validation_data=rows)
    assert times.source is None
    assert times.share("rest") > 0.5
    assert times.seconds["rest"] / times.steps < 4 * BATCH_S
