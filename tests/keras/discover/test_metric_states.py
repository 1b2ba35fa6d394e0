"""Metric objects of a custom loop, as a script under `diagnose run` reads them."""

import numpy as np
import pytest

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.keras.discover.metric_states import MetricStates
from diagnostics.taps import keras as taps
from tests.keras.fits import findings_of, keras, layers, tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 6)).astype("float32")
Y = (X[:, :1] + 0.3 * RNG.normal(size=(240, 1)) > 0).astype("float32")


def train(epochs=5, *, traced=True, resets=(), folds=1):
    """Train on rows 0 to 159, evaluate rows 160 to 239; return the metrics."""
    loss, accuracy = keras.metrics.Mean(), keras.metrics.BinaryAccuracy()
    for _ in range(folds):
        start = keras.initializers.RandomNormal(seed=1)  # some chance weights are too good to gain much
        model = keras.Sequential([layers.Input((6,)), layers.Dense(1, "sigmoid", kernel_initializer=start)])
        optimizer = keras.optimizers.SGD(0.5)

        def step(x, y, model=model, optimizer=optimizer):
            with tf.GradientTape() as tape:
                error = keras.ops.mean(keras.losses.binary_crossentropy(y, model(x, training=True)))
            gradients = tape.gradient(error, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            loss.update_state(error)

        def validate(x, y, model=model):
            accuracy.update_state(y, model(x, training=False))
            return accuracy.result()

        if traced:
            step, validate = tf.function(step), tf.function(validate)
        for _ in range(epochs):
            for metric in (loss, accuracy):
                if type(metric).__name__ in resets:
                    metric.reset_state()
            for row in range(0, 160, 20):
                step(X[row : row + 20], Y[row : row + 20])
            for row in range(160, 240, 40):
                validate(X[row : row + 40], Y[row : row + 40])
            loss.result(), accuracy.result()
    return loss, accuracy


def found(**options):
    return [
        (f.severity, f.evidence["metric"], f.evidence["times"], f.evidence["rows"])
        for f in findings_of(lambda: train(**options), "misreported-metric")
    ]


@pytest.mark.parametrize("traced", [True, False])
def test_names_the_validation_metric_that_is_never_reset(traced):
    assert found(traced=traced) == [("warning", "BinaryAccuracy", 5, 80)]


@pytest.mark.parametrize(
    "options", [{"resets": ("Mean", "BinaryAccuracy")}, {"epochs": 2}, {"epochs": 1, "folds": 4}]
)
def test_accepts_resets_few_epochs_and_pooled_folds(options):
    assert found(**options) == []


@pytest.mark.parametrize("traced", [True, False])
def test_counts_are_read_and_left(traced):
    keras.utils.set_random_seed(0)
    alone = [[float(value) for value in metric.variables] for metric in train(traced=traced)]
    faults = []
    states = MetricStates(FaultGuard(on_fault=faults.append))
    end = states.listen()
    try:
        keras.utils.set_random_seed(0)
        ends = taps.optimizer_apply.after.subscribe(lambda _, optimizer, *__: states.stepped(optimizer))
        metrics = train(traced=traced, resets=("Mean",))
        ends()
    finally:
        end()
    assert faults == []
    assert [float(value) for value in metrics[1].variables] == alone[1]
    if not traced:  # a traced step is told by the loop that makes it
        accuracy, loss = states.facts()
        assert (loss.resets, loss.compares, accuracy.resets, accuracy.compares) == (4, False, 0, True)
        assert accuracy.counts == (80, 160, 240, 320, 400)
        assert (loss.trained, accuracy.trained) == (True, False)
