"""Gradients that a script takes from tapes and leaves, and loops that do something with them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from diagnostics.run.observer import ScriptObserver

X = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")
Y = X[:, :3].argmax(1)
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def network():
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(3)])


def gradients_of(model):
    def gradients(inputs, labels):
        with tf.GradientTape() as tape:
            loss = LOSS(labels, model(inputs, training=True))
        return tape.gradient(loss, model.trainable_variables)

    return gradients


def found(script):
    """What `diagnose run` would name in a script."""
    observer = ScriptObserver()
    try:
        script()
    finally:
        observer.close()
    reports = observer.watched()
    assert observer.faults == []
    return [finding for report in reports for finding in report.findings]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
def test_a_loop_that_forgot_its_optimizer_is_named(compiled):
    def script():
        model = network()
        _optimizer = keras.optimizers.Adam(1e-3)
        take = gradients_of(model)
        take = tf.function(take) if compiled else take
        for _ in range(24):
            take(X, Y)

    (finding,) = found(script)
    assert (finding.rule, finding.severity) == ("unchanged-parameters", "error")
    assert finding.message == (
        "The training loop has run 24 backward passes, but none of the watched optimizers has taken a step. The "
        "weights have not changed."
    )
    assert finding.fix == "optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # at each step"


def by_hand(model):
    for _ in range(24):
        for variable, gradient in zip(model.trainable_variables, gradients_of(model)(X, Y), strict=True):
            variable.assign_sub(0.1 * gradient)


def accumulated(model):
    optimizer, sums = keras.optimizers.SGD(0.1), None
    for _ in range(24):
        taken = gradients_of(model)(X, Y)
        sums = taken if sums is None else [a + b for a, b in zip(sums, taken, strict=True)]
    optimizer.apply_gradients(zip(sums, model.trainable_variables, strict=True))


def norms_of_a_new_model(model):
    for _ in range(24):
        tf.linalg.global_norm(gradients_of(model)(X, Y))


def importance_of_weights_that_learned(model):
    model.compile("sgd", LOSS)
    for variable in model.trainable_variables:
        variable.assign(variable + 0.1)  # as loaded from a file
    norms_of_a_new_model(model)


def norms_after_fit(model):
    model.compile("sgd", LOSS)
    model.fit(X, Y, verbose=0)
    norms_of_a_new_model(model)


def saliency(model):
    model.compile("sgd", LOSS)
    for _ in range(24):
        images = tf.convert_to_tensor(X)
        with tf.GradientTape() as tape:
            tape.watch(images)
            loss = LOSS(Y, model(images))
        tape.gradient(loss, images)


@pytest.mark.parametrize(
    "script",
    [by_hand, accumulated, norms_of_a_new_model, importance_of_weights_that_learned, norms_after_fit, saliency],
)
def test_gradients_that_are_used_or_wanted_for_themselves_are_not(script):
    said = found(lambda: script(network()))
    assert "unchanged-parameters" not in [finding.rule for finding in said]
