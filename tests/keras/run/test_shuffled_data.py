"""Shuffles of `tf.data` that are redrawn for each iteration."""

import numpy as np

from diagnostics.collectors.keras.discover.evaluations import split_of
from diagnostics.facts.data import ShuffledSplit
from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import tf
from tests.keras.programs import keras, layers
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


def found_after(test, compares=True):
    def script(model):
        fit(model)
        answers = model.predict(test, verbose=0)
        if compares:
            print((answers.argmax(axis=1) == np.concatenate([y for _, y in test])).mean())

    return [finding.rule for finding in observed(script)]


def test_names_predictions_whose_labels_come_from_another_pass():
    assert found_after(DATA.shuffle(128).batch(32)) == ["shuffled-predictions"]


def test_silent_without_another_pass_or_with_one_order():
    assert found_after(DATA.shuffle(128).batch(32), compares=False) == []
    assert found_after(DATA.batch(32)) == []


def validated_on(training, validation):
    run = ScriptObserver()
    try:
        model = keras.Sequential([layers.Input((6,)), layers.Dense(3, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy")
        model.fit(training, validation_data=validation, verbose=0)
    finally:
        run.close()
    return [finding.rule for finding in run.trainings[0].examined.findings]


def test_names_a_dataset_that_is_its_own_validation_data():
    training = DATA.shuffle(128).batch(32)
    assert "leaked-evaluation-rows" in validated_on(training, training)


def test_silent_on_one_that_makes_up_its_rows():
    drawn = tf.data.Dataset.from_generator(
        lambda: ((np.random.normal(size=(32, *ROWS.shape[1:])), LABELS[:32]) for _ in range(4)),
        output_signature=(tf.TensorSpec((32, *ROWS.shape[1:])), tf.TensorSpec((32,), tf.int64)),
    )
    assert "leaked-evaluation-rows" not in validated_on(drawn, drawn)
