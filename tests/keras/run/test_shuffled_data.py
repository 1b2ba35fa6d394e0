"""Shuffles of `tf.data` that are drawn anew for each iteration."""

import numpy as np

from diagnostics.collectors.keras.discover.shuffled_data import split_of
from diagnostics.facts.data import ShuffledSplit
from tests.keras.fits import tf
from tests.keras.run.test_evaluations import LABELS, ROWS, fit, observed

DATA = tf.data.Dataset.from_tensor_slices((ROWS, LABELS))


def test_finds_two_cuts_of_one_shuffle():
    shuffled = DATA.shuffle(128)
    split = split_of(shuffled.skip(28).batch(32).prefetch(1), shuffled.take(28).batch(32))
    assert split == ShuffledSplit("skip", "take")


def test_silent_where_the_order_is_fixed_or_drawn_after_the_cut():
    fixed, cached = DATA.shuffle(128, reshuffle_each_iteration=False), DATA.shuffle(128).cache()
    for source in (fixed, cached, DATA):
        assert split_of(source.skip(28).shuffle(100).batch(32), source.take(28).batch(32)) is None
    assert split_of(DATA.shuffle(128).skip(28), DATA.shuffle(128).take(28)) is None
    assert split_of((ROWS, LABELS), DATA) is None


def mixed_up(test, collect):
    def script(model):
        fit(model)
        model.predict(test, verbose=0)
        collect(test)

    return [finding.rule for finding in observed(script)]


def test_names_predictions_whose_labels_come_from_another_pass():
    test = DATA.shuffle(128).batch(32)
    assert mixed_up(test, lambda data: np.concatenate([y for _, y in data])) == ["shuffled-predictions"]


def test_silent_without_another_pass_or_with_one_order():
    assert mixed_up(DATA.shuffle(128).batch(32), lambda data: None) == []
    assert mixed_up(DATA.batch(32), lambda data: np.concatenate([y for _, y in data])) == []
