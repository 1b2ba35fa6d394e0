"""What `evaluate` reports, also within `fit`, is compared with the predictions for the same rows."""

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import keras, layers

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(1200, 6)).astype("float32")
SCORES = ROWS[:, :1] + 0.5 * ROWS[:, 1:2] + 0.9 * RNG.normal(size=(1200, 1))
RARE, COMMON = (SCORES > 1.8).astype("float32"), (SCORES > 0.3).astype("float32")


def f1(truth, answers):
    truth, answers = keras.ops.reshape(truth, (-1,)), keras.ops.round(keras.ops.reshape(answers, (-1,)))
    right = keras.ops.sum(truth * answers)
    return 2 * right / (keras.ops.sum(truth) + keras.ops.sum(answers) + 1e-7)


def found(metric, activation=None, labels=RARE, then=lambda model: None):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(8, "relu"), layers.Dense(1, activation=activation)])
    loss = keras.losses.BinaryCrossentropy(from_logits=activation is None)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=[metric])
    run = ScriptObserver(looks_again=True)
    try:
        model.fit(ROWS[:800], labels[:800], epochs=8, validation_data=(ROWS[800:], labels[800:]), verbose=0)
        then(model)
    finally:
        run.close()
    run.look_again(60)
    assert run.faults == []
    names = "misreported-metric", "metric-on-logits"
    return [
        (finding.rule, finding.severity)
        for report in run.examined
        for finding in report.findings
        if finding.rule in names
    ]


def test_names_a_mean_of_the_f1_of_batches():
    assert found(f1, "sigmoid") == [("misreported-metric", "warning")]


def test_names_an_accuracy_of_logits_compared_with_one_half():
    assert found("accuracy", labels=COMMON) == [("metric-on-logits", "warning")]


@pytest.mark.parametrize("metric", [keras.metrics.F1Score(threshold=0.5), "accuracy"], ids=["F1", "accuracy"])
def test_silent_on_right_numbers(metric):
    assert found(metric, "sigmoid") == []


def test_names_a_binary_accuracy_of_one_class_out_of_ten():
    """Keras computes this loss with the logits that the softmax leaves on its output."""
    classes = keras.utils.to_categorical(np.digitize(SCORES[:, 0], np.linspace(-1.5, 1.5, 9)), 10)
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(10, activation="softmax")])
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["binary_accuracy"])
    run = ScriptObserver(looks_again=True)
    try:
        model.fit(ROWS[:800], classes[:800], epochs=4, verbose=0)
        model.evaluate(ROWS[800:], classes[800:], verbose=0)
    finally:
        run.close()
    run.look_again(60)
    assert run.faults == []
    (finding,) = [one for report in run.examined for one in report.findings if one.rule == "metric-on-logits"]
    assert finding.evidence["reported"] > 0.88 > 0.5 > finding.evidence["recomputed"]


def test_silent_where_the_weights_have_changed_since():
    def restore(model):
        model.set_weights([0.5 * weight for weight in model.get_weights()])

    assert found(f1, "sigmoid", then=restore) == []
