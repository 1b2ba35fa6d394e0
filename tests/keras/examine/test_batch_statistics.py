"""Moving statistics of batch norm, compared with those of a batch; nothing of the model changes."""

import numpy as np
import pytest

from diagnostics.collectors.keras.dependence.measure import measure
from diagnostics.collectors.keras.dependence.subject import KerasSubject, keep_batch
from tests.keras.programs import keras, layers

RANDOM = np.random.default_rng(0)
LABELS = np.arange(40) % 2
ROWS = (RANDOM.normal(size=(40, 4)) + 30 + 3 * LABELS[:, None]).astype("float32")


def classifier(norm):
    model = keras.Sequential([keras.Input((4,)), norm, layers.Dense(2)])
    model.layers[-1].set_weights([np.array([[-1.0, 1.0]] * 4), np.zeros(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def measured(model, labels=LABELS):
    before = model.get_weights()
    facts = measure(KerasSubject(model, keep_batch(ROWS, labels, None)))
    assert all(map(np.array_equal, before, model.get_weights()))
    return facts


@pytest.mark.parametrize("labels", [LABELS, LABELS[:, None], np.eye(2)[LABELS]], ids=["flat", "column", "one-hot"])
def test_statistics_that_have_seen_no_batch_lag(labels):
    found = measured(classifier(layers.BatchNormalization()), labels).statistics
    assert (found.rows, found.most_frequent) == (40, 20)
    assert found.memory == pytest.approx(100)
    assert found.right_with_own >= 38
    assert found.right_with_running == 20  # all are taken for class 1


def test_statistics_that_have_settled_do_not():
    model = classifier(layers.BatchNormalization(momentum=0.5))
    for _ in range(30):
        model(ROWS, training=True)
    found = measured(model).statistics
    assert found.memory == 2
    assert found.right_with_running == found.right_with_own >= 38


def test_the_own_statistics_are_those_of_the_batch():
    model = classifier(layers.BatchNormalization(center=False, scale=False))
    subject = KerasSubject(model, keep_batch(ROWS, LABELS, None))
    with subject.own_statistics():
        own = subject.ask(subject.inputs).main
    normal = (ROWS - ROWS.mean(0)) / np.sqrt(ROWS.var(0) + 1e-3)
    np.testing.assert_allclose(own[:, 1], normal.sum(1), rtol=1e-3, atol=1e-3)


def test_frozen_layers_keep_their_statistics():
    facts = measured(classifier(layers.BatchNormalization(trainable=False)))
    assert facts.statistics is None
    assert facts.why_not["statistics"] == "the model has no batch norm with running statistics"


def test_needs_labels():
    facts = measured(classifier(layers.BatchNormalization()), RANDOM.normal(size=40))
    assert facts.why_not["statistics"] == "the labels of the batch are not known"
