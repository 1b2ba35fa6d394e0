"""Sample weights of 0 that are counted in the batches of a `fit`."""

import numpy as np

from diagnostics.collectors.keras.watch.probes.sample_weights import BATCHES, RowWeights
from diagnostics.facts.data import SampleWeights
from tests.keras.fits import tf

X = np.random.default_rng(0).normal(size=(16, 5)).astype("float32")
LABELS = np.arange(16) % 3


def counted(*batches):
    weights = RowWeights(None)
    for batch in batches:
        weights.on_batch(batch)
    return next(iter(weights.facts()), None)


def test_there_are_none_without_weights():
    assert counted((X, LABELS), (X,), X) is None


def test_rows_that_weigh_nothing_are_counted():
    half = np.array([0.0, 1.0] * 8)
    seen = counted((X, LABELS, half), (X, LABELS, tf.zeros(16)))
    assert (seen.batches, seen.blank, seen.rows, seen.zero_rows) == (2, 1, 32, 24)


def test_a_row_that_weighs_in_one_output_counts():
    seen = counted((X, [LABELS] * 2, [np.zeros(16), np.ones(16)]))
    assert seen == SampleWeights(batches=1, blank=0, rows=16, zero_rows=0)


def test_weights_of_positions_count_by_row():
    positions = np.zeros((16, 7))
    positions[3, 5] = 1
    assert counted((X, LABELS, positions)) == SampleWeights(batches=1, blank=0, rows=16, zero_rows=15)


def test_batches_come_from_all_over_a_long_run_and_stay_few():
    seen = counted(*((X, LABELS, np.full(16, float(step < 500))) for step in range(1000)))
    assert seen.batches <= BATCHES
    assert 0.4 < seen.blank / seen.batches < 0.6


def test_batches_that_only_the_model_understands_are_left():
    assert counted((X, LABELS, LABELS, LABELS)) is None


def test_rows_without_weight_are_counted_by_class():
    seen = counted((X, LABELS, (LABELS == 1).astype("float32")), (X, LABELS.reshape(-1, 1), LABELS == 1))
    assert seen.by_label == {0: (12, 12), 1: (10, 0), 2: (10, 10)}


def test_classes_are_left_where_a_row_has_none_of_its_own():
    assert counted((X, X, np.ones(16))).by_label == {}
    assert counted((X, np.linspace(0, 1, 16), np.ones(16))).by_label == {}
