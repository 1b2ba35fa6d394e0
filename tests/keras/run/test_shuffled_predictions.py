"""Predictions of a dataset that is reshuffled, and the passes that a script makes over it itself."""

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.programs import keras, layers, tf

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.random.default_rng(0).normal(size=(60, 4)).astype("float32")
Y = (X[:, 0] > 0).astype("int32")


def shuffled():
    return tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(60).batch(10)


def rules_after(use):
    """Fit a model on one dataset, let `use` do what it likes with a second one, and return what is found."""
    observer = ScriptObserver()
    try:
        model = keras.Sequential([keras.Input((4,)), layers.Dense(1, "sigmoid")])
        model.compile("adam", "binary_crossentropy")
        training = shuffled()
        model.fit(training, epochs=1, verbose=0)
        use(model, training, shuffled())
    finally:
        observer.close()
    assert observer.faults == []
    (fitted,) = observer.trainings
    return {finding.rule for finding in fitted.examined.findings}


def labels_of(dataset):
    return np.concatenate([labels for _, labels in dataset])


def test_labels_of_another_pass_are_named():
    def compare(model, _training, held_out):
        return (model.predict(held_out, verbose=0)[:, 0] > 0.5) == labels_of(held_out)

    assert "shuffled-predictions" in rules_after(compare)


def test_labels_of_an_unbatched_pass_are_named():
    def compare(model, _training, held_out):
        truth = np.array([label for _, label in held_out.unbatch()])
        return (model.predict(held_out, verbose=0)[:, 0] > 0.5) == truth

    assert "shuffled-predictions" in rules_after(compare)


def test_rows_that_are_only_looked_at_are_no_finding():
    def look(model, _training, held_out):
        for rows, labels in held_out.take(1):
            print(rows.shape, labels.shape)
        model.predict(held_out, verbose=0)

    assert "shuffled-predictions" not in rules_after(look)


def test_training_rows_that_are_counted_are_no_finding():
    def count(model, training, _held_out):
        np.bincount(labels_of(training))
        model.predict(training, verbose=0)

    assert "shuffled-predictions" not in rules_after(count)


def test_classes_that_are_counted_beside_predictions_are_no_finding():
    def count(model, _training, held_out):
        answers = model.predict(held_out, verbose=0)
        print(answers.mean(), np.bincount(labels_of(held_out)))

    assert "shuffled-predictions" not in rules_after(count)


def test_labels_of_the_training_rows_are_named_too():
    def compare(model, training, _held_out):
        return (model.predict(training, verbose=0)[:, 0] > 0.5) == labels_of(training)

    assert "shuffled-predictions" in rules_after(compare)
