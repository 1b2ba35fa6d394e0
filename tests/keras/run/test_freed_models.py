"""A script that trains many models and frees each of them has its memory back, watched or not."""

import gc
import time
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.keras.discover import tape_pass
from diagnostics.collectors.keras.examine.pipeline import KerasPipeline
from diagnostics.collectors.keras.examine.stateless_copy import KerasCopy
from diagnostics.collectors.shared.overfit_run import Plan
from diagnostics.run import looks
from diagnostics.run.observer import ScriptObserver


def look_at_a_model():
    """Return the second look at a model, of whose examination nothing else is left, and a reference to it."""
    rows = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    pipeline = KerasPipeline(model, (rows, np.arange(32) % 2))
    for stage in (pipeline.dataset, pipeline.batch, pipeline.forward):
        list(stage())
    return looks.of_keras(model, pipeline, FaultGuard()), weakref.ref(model)


def test_the_second_look_holds_no_large_model(monkeypatch):
    monkeypatch.setattr(looks, "LARGEST_HELD", 0)
    look, freed = look_at_a_model()
    keras.backend.clear_session()
    gc.collect()
    assert freed() is None
    assert look(time.monotonic() + 5, lambda: None) == "the script has freed its model"


def test_a_trial_frees_the_copy_that_the_last_one_trained():
    rows, labels = tf.ones((8, 4)), tf.zeros((8,), tf.int32)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    copy = KerasCopy(model, rows, labels, None)
    copy.run(Plan(0.1, theirs=False, factor=1.0, steps=2, enough=None), None)
    (learner,) = copy._learners.values()
    handles = [variable.value.handle for variable in learner._own]
    assert [size(handle) for handle in handles] == [8, 2]
    del copy, learner
    gc.collect()
    assert [size(handle) for handle in handles] == [
        8,
        2,
    ]  # an operation in a finalizer may wait for ever for a lock
    KerasCopy(model, rows, labels, None)
    assert [size(handle) for handle in handles] == [0, 0]
    assert [weights.size for weights in model.get_weights()] == [8, 2]


def size(handle):
    return int(tf.size(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)))


STYLES = ["eager", "function", "train_on_batch"]
STEPS = 6


def train(style, regularizer=None):
    """Train a model that nothing holds afterwards; return weak references to what it was made of."""
    rows = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
    labels = rows[:, :2].argmax(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, kernel_regularizer=regularizer)])
    optimizer, loss_of = keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(inputs, target):
        with tf.GradientTape() as tape:
            loss = loss_of(target, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    if style == "train_on_batch":
        model.compile(optimizer, loss_of)
        step = model.train_on_batch
    elif style == "function":
        step = tf.function(step)
    for _ in range(STEPS):
        step(tf.constant(rows), tf.constant(labels))
    return [weakref.ref(one) for one in (model, optimizer, loss_of, *model.trainable_variables)]


def alive(references):
    gc.collect()
    return sum(reference() is not None for reference in references)


@pytest.fixture
def observed():
    looking = ScriptObserver(looks_again=True)
    yield looking
    looking.close()
    assert looking.faults == []


@pytest.mark.parametrize("style", STYLES)
def test_large_models_are_freed_as_without_us(style, observed, monkeypatch):
    monkeypatch.setattr(looks, "LARGEST_HELD", 0)
    monkeypatch.setattr(tape_pass, "MOST_BYTES", 0)
    assert [alive(train(style)) for _ in range(5)] == [0] * 5
    observed.close()
    assert len(observed.watched()) == 5
    assert [training.watching.loop.steps for training in observed.trainings] == [STEPS] * 5


def fit():
    """Fit a model that nothing holds afterwards; return weak references to what it was made of."""
    rows = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(rows, rows[:, :2].argmax(1), batch_size=32, verbose=0)
    return [weakref.ref(one) for one in (model, model.optimizer, *model.trainable_variables)]


def test_large_models_that_are_fitted_are_freed_as_without_us(observed, monkeypatch):
    monkeypatch.setattr(looks, "LARGEST_HELD", 0)
    for _ in range(5):
        references = fit()
        keras.backend.clear_session()
        assert alive(references) == 0
    assert len(observed.watched()) == 5


@pytest.mark.parametrize("style", ["eager", "function"])
def test_a_loop_is_held_until_another_begins(style, observed):
    trained = [train(style) for _ in range(2)]
    assert [alive(references) for references in trained] == [0, 0]
    assert alive(train(style)) == 0


@pytest.mark.parametrize("style", ["eager", "function"])
def test_the_only_loop_is_looked_at_after_the_script_freed_it(style, observed):
    train(style)
    observed.close()
    assert observed.look_again(60).status == "passed"


@pytest.mark.parametrize("style", ["eager", "function"])
def test_an_unread_penalty_is_named_after_its_variables_are_freed(style, observed):
    assert alive(train(style, keras.regularizers.L2(0.1)) + train(style, keras.regularizers.L2(0.1))) == 0
    observed.close()
    found = [[finding.rule for finding in report.findings] for report in observed.watched()]
    assert found == [["setting-without-effect"]] * 2


def test_handed_rows_outlive_the_optimizer(observed, monkeypatch):
    monkeypatch.setattr(looks, "LARGEST_HELD", 0)
    assert alive(train("train_on_batch")) == 0  # and the tape of Keras' own step holds no model
    observed.close()
    (training,) = observed.trainings
    assert len(training.rows.targets) >= 32


def test_a_tape_that_no_step_follows_keeps_no_model(observed):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    inputs = tf.ones((8, 4))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        score = tf.reduce_sum(model(inputs))
    tape.gradient(score, inputs)
    references = [weakref.ref(one) for one in (model, *model.trainable_variables)]
    del model, tape, score
    assert alive(references) == 0


def test_a_large_model_that_the_script_still_holds_is_looked_at(observed, monkeypatch):
    monkeypatch.setattr(tape_pass, "MOST_BYTES", 0)
    model, optimizer = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]), keras.optimizers.SGD(0.1)
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones((8, 4))) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    observed.close()
    assert observed.look_again(60).status == "passed"
