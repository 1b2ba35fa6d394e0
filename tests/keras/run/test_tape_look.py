"""What a second look says of loops around a `tf.GradientTape`, and that it leaves the model as it was."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from diagnostics.run.observer import ScriptObserver

pytestmark = pytest.mark.filterwarnings("ignore")
INPUTS = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")
LABELS = INPUTS[:, :3].argmax(1)
LOGITS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def dense(units, activation=None):
    return keras.Sequential([keras.layers.Dense(units, activation=activation)])


def looked_at(forward, variables, models, graph=False, scale=1):
    """Return the findings by rule after some steps of a loop on `models`, whose weights must stay as they are."""
    for model in models:
        model.build((None, 6 if model is models[0] else 4))
    looking, optimizer = ScriptObserver(looks_again=True), keras.optimizers.Adam(1e-2)

    def step(inputs, labels):
        with tf.GradientTape() as tape:
            value = LOGITS(labels, forward(inputs))
        wanted = variables()
        pairs = zip(tape.gradient(value, wanted), wanted, strict=True)
        optimizer.apply_gradients([(g, v) for g, v in pairs if g is not None])
        return value

    run = tf.function(step) if graph else step
    try:
        for _ in range(5):
            run(tf.constant(INPUTS * scale) if graph else INPUTS * scale, LABELS)
    finally:
        looking.close()
    before = [weight for model in models for weight in model.get_weights()]
    stage = looking.look_again(60)
    assert looking.faults == []
    assert all(map(np.array_equal, before, [weight for model in models for weight in model.get_weights()]))
    (training,) = looking.trainings
    return stage, {f.rule: f for f in training.examined.findings} if training.examined else {}


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "function"])
def test_names_the_encoder_that_no_optimizer_holds(graph):
    encoder, head = dense(4, "tanh"), dense(3)
    _, found = looked_at(
        lambda x: head(encoder(x)), lambda: head.trainable_variables, (encoder, head), graph=graph
    )
    finding = found["optimizer-misses-parameters"]
    assert finding.severity == "warning"
    assert finding.for_library("keras").fix.startswith("pass encoder.trainable_variables + head")


def test_looks_at_layers_that_no_model_holds():
    hidden, head = keras.layers.Dense(4, "tanh"), keras.layers.Dense(3)
    stage, found = looked_at(
        lambda x: head(hidden(x)), lambda: hidden.trainable_variables + head.trainable_variables, (hidden, head)
    )
    assert (stage.status, found) == ("passed", {})


def test_is_silent_on_an_encoder_that_was_trained_before():
    encoder, head = dense(4, "tanh"), dense(3)
    encoder.build((None, 6))
    encoder.layers[0].bias.assign(np.full(4, 0.1))
    _, found = looked_at(lambda x: head(encoder(x)), lambda: head.trainable_variables, (encoder, head))
    assert found == {}


def test_names_the_head_that_was_replaced_after_the_variables_were_listed():
    encoder, old, head = dense(4, "tanh"), dense(8), dense(3)
    old.build((None, 4))
    listed = [*encoder.trainable_variables, *old.trainable_variables]

    def variables():
        return [*encoder.trainable_variables, *listed]

    _, found = looked_at(lambda x: head(encoder(x)), variables, (encoder, head))
    assert "optimizer-misses-parameters" in found


def test_names_what_numpy_cuts_off():
    encoder, head = dense(4, "tanh"), dense(3)

    def variables():
        return [*encoder.trainable_variables, *head.trainable_variables]

    _, found = looked_at(lambda x: head(encoder(x).numpy()), variables, (encoder, head))
    assert found["unreached-parameters"].severity == "warning"
    assert "2 of the 4 trainable parameters get no gradient" in found["unreached-parameters"].message


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "function"])
def test_examines_the_batch_of_the_first_step(graph):
    model = dense(3)
    stage, found = looked_at(model, lambda: model.trainable_variables, (model,), graph=graph, scale=300)
    assert stage.status == "passed"
    assert "unscaled-inputs" in found


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "function"])
def test_is_silent_on_a_sound_loop(graph):
    model = dense(3)
    stage, found = looked_at(model, lambda: model.trainable_variables, (model,), graph=graph)
    assert (stage.status, found) == ("passed", {})


def test_patches_nothing_after_the_first_tape():
    model, before = dense(3), (keras.layers.Layer.__call__, keras.losses.Loss.__call__)
    looking = ScriptObserver(looks_again=True)
    try:
        with tf.GradientTape() as tape:
            assert keras.layers.Layer.__call__ is not before[0]
            loss = LOGITS(LABELS, model(INPUTS))
        tape.gradient(loss, model.trainable_variables)
        with tf.GradientTape():
            assert (keras.layers.Layer.__call__, keras.losses.Loss.__call__) == before
    finally:
        looking.close()


def test_a_loop_over_plain_variables_after_a_fit_is_watched_as_well():
    looking, model = ScriptObserver(), dense(3)
    weights, optimizer = tf.Variable(np.ones((6, 3), np.float32) / 6), keras.optimizers.SGD(0.1)
    try:
        model.compile("adam", LOGITS)
        model.fit(INPUTS, LABELS, epochs=1, verbose=0)
        for _ in range(12):
            with tf.GradientTape() as tape:
                loss = LOGITS(LABELS, INPUTS @ weights)
            optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights], strict=True))
    finally:
        looking.close()
    assert looking.faults == []
    steps = [looking.course(training).history.steps.total_steps for training in looking.trainings]
    assert steps == [2, 12]
