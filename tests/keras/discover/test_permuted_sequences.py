"""Sequences of batches that draw their rows in an order of their own."""

import numpy as np
import pytest

from diagnostics.collectors.keras.discover.evaluations import is_permuted
from diagnostics.run.observer import ScriptObserver
from tests.keras.programs import keras, layers

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.random.default_rng(0).normal(size=(60, 4)).astype("float32")
Y = (X[:, 0] > 0).astype("int32")


class Batches(keras.utils.PyDataset):
    def __init__(self, x, y, order):
        super().__init__()
        self.x, self.y, self.order = x, y, order

    def __len__(self):
        return 6

    def __getitem__(self, number):
        rows = self.order[10 * number : 10 * number + 10]
        return self.x[rows], self.y[rows]


def rules_after(order, compare):
    observer = ScriptObserver()
    try:
        model = keras.Sequential([keras.Input((4,)), layers.Dense(1, "sigmoid")])
        model.compile("adam", "binary_crossentropy")
        model.fit(X, Y, epochs=1, verbose=0)
        compare(model, order)
    finally:
        observer.close()
    assert observer.faults == []
    (fitted,) = observer.trainings
    return {finding.rule for finding in fitted.examined.findings}


def held_against_their_source(model, order):
    test = Batches(X, Y, order)
    return (model.predict(test, verbose=0)[:, 0] > 0.5) == Y


def held_in_their_order(model, order):
    test = Batches(X, Y, order)
    return (model.predict(test, verbose=0)[:, 0] > 0.5) == Y[test.order]


PERMUTED = np.random.default_rng(1).permutation(60)


def test_labels_in_the_order_of_their_source_are_named():
    assert "shuffled-predictions" in rules_after(PERMUTED, held_against_their_source)


@pytest.mark.parametrize(
    ("order", "compare"), [(np.arange(60), held_against_their_source), (PERMUTED, held_in_their_order)]
)
def test_labels_in_the_order_of_the_answers_are_not(order, compare):
    assert "shuffled-predictions" not in rules_after(order, compare)


def test_generators_of_keras_say_whether_they_shuffle():
    make = keras.src.legacy.preprocessing.image.ImageDataGenerator().flow
    pictures = np.zeros((8, 6, 6, 1), "float32")
    assert is_permuted(make(pictures, Y[:8], batch_size=4))
    assert not is_permuted(make(pictures, Y[:8], batch_size=4, shuffle=False))
