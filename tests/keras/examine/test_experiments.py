"""Would a Keras model learn if one thing were different? Textbook bugs, and what experiments on copies say."""

import time

import numpy as np
import pytest

from diagnostics.collectors.keras.examine.experiments import experiments
from diagnostics.collectors.keras.examine.kept_training import UNKNOWN_LOSS, WEIGHTED, keep_training
from diagnostics.collectors.keras.state import global_states_kept
from diagnostics.run.observer import ScriptObserver
from tests.keras.programs import keras, layers

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS, FEATURES, SIZE, STEPS = 600, 12, 40, 80
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(ROWS, FEATURES)).astype("float32")
NUMBERS = (X @ RANDOM.normal(size=(FEATURES, 1)) / 3).astype("float32")
LABELS = (X @ RANDOM.normal(size=(FEATURES, 4))).argmax(axis=1)
CLASSES = "sparse_categorical_crossentropy"


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(0)


def net(outputs=1, activation=None, middle=(), initializer="glorot_uniform"):
    hidden = layers.Dense(32, "tanh", kernel_initializer=initializer)
    last = layers.Dense(outputs, activation, kernel_initializer=initializer)
    return keras.Sequential([keras.Input((FEATURES,)), hidden, *middle, last])


def frozen(model):
    for layer in model.layers:
        layer.trainable = False
    model.layers[-1].trainable = True
    return model


def kept(model, optimizer, loss, x=X, y=NUMBERS, weights=None):
    model.compile(optimizer, loss)
    training = keep_training(model)
    if not isinstance(training, str):
        for start in range(0, 3 * ROWS, SIZE):
            part = slice(start % ROWS, start % ROWS + SIZE)
            training.take((x[part], y[part]) if weights is None else (x[part], y[part], weights[part]))
    return training


def tried(model, *arguments, **options):
    training = kept(model, *arguments, **options)
    with global_states_kept():
        return experiments(model, training, time.monotonic() + 90, STEPS)


SGD = keras.optimizers.SGD


class TestNamesTheCause:
    @pytest.mark.parametrize(
        ("build", "arguments", "best"),
        [
            (net, lambda: (keras.optimizers.Adam(1e-7), "mse"), "learning rate * 10,000"),
            (net, lambda: (SGD(0.1, clipnorm=1e-6), "mse"), "no clipping"),
            (lambda: net(4, "softmax"), lambda: (SGD(0.1), CLASSES, X * 25 + 127, LABELS), "inputs standardised"),
            (lambda: net(1, "relu"), lambda: (SGD(0.05), "mse", X, NUMBERS - 3), "last activation removed"),
            (lambda: net(middle=[layers.Dropout(0.95)]), lambda: (SGD(0.02), "mse"), "dropout off"),
            (lambda: net(initializer="zeros"), lambda: (SGD(0.1), "mse"), "default initialisation"),
            (lambda: frozen(net(middle=[layers.Dense(1)])), lambda: (SGD(0.1), "mse"), "unfrozen"),
        ],
        ids=["rate", "clipping", "inputs", "relu", "dropout", "zeros", "frozen"],
    )
    def test_of_a_model_that_does_not_learn(self, build, arguments, best):
        found = tried(build(), *arguments())
        assert not isinstance(found, str), found
        assert [cure.name for cure in found.cures][:1] == [best]


class TestNamesNothing:
    def test_for_labels_that_were_shuffled(self):
        labels = np.random.default_rng(1).permutation(LABELS)
        found = tried(net(4, "softmax"), SGD(0.01), CLASSES, X, labels)
        assert not isinstance(found, str), found
        assert found.cures == ()

    def test_for_a_model_that_learns(self):
        assert "an unchanged copy does learn" in tried(net(), SGD(0.1), "mse")


def test_leaves_model_optimizer_and_random_states_alone():
    model = net(middle=[layers.Dropout(0.5), layers.BatchNormalization()])
    training = kept(model, keras.optimizers.Adam(1e-9), "mse")
    model.fit(X, NUMBERS, verbose=0)
    before = [v.numpy() for v in (*model.variables, *model.optimizer.variables)]
    state, losses = np.random.get_state()[1].copy(), list(model.losses)
    with global_states_kept():
        found = experiments(model, training, time.monotonic() + 90, 40)
    assert not isinstance(found, str), found
    after = [v.numpy() for v in (*model.variables, *model.optimizer.variables)]
    assert all(map(np.array_equal, before, after))
    assert np.array_equal(state, np.random.get_state()[1])
    assert model.losses == losses


class Odd(keras.Model):
    """A subclass whose argument cannot be written down."""

    def __init__(self, function):
        super().__init__()
        self.function, self.last = function, net(middle=[layers.BatchNormalization(), layers.Dropout(0.1)])

    def call(self, x, training=False):
        return self.last(self.function(x), training=training)


def test_trains_a_subclass_that_cannot_be_built_again_without_touching_it():
    model = Odd(lambda x: x)
    model(X[:1])
    training = kept(model, SGD(0.1, clipnorm=1e-6), "mse")
    before = [v.numpy() for v in model.variables]
    with global_states_kept():
        found = experiments(model, training, time.monotonic() + 90, STEPS)
    assert not isinstance(found, str), found
    assert [cure.name for cure in found.cures][:1] == ["no clipping"]
    assert "dropout off" in found.left_out
    assert all(map(np.array_equal, before, [v.numpy() for v in model.variables]))


class TestSaysWhy:
    def test_no_loss_of_the_scripts_own_is_computed_again(self):
        assert kept(net(), SGD(1e-7), lambda y, p: keras.ops.mean((y - p) ** 2)) == UNKNOWN_LOSS

    def test_weights_of_rows_are_not_repeated(self):
        assert tried(net(), SGD(1e-7), "mse", weights=np.ones(ROWS)) == WEIGHTED

    def test_a_large_model_is_not_kept(self):
        assert "16 MiB" in tried(net(middle=[layers.Dense(130_000)]), SGD(1e-7), "mse")


def test_a_model_that_makes_its_weights_in_its_first_step_begins_after_it():
    model = keras.Sequential([layers.Dense(32, "tanh"), layers.Dense(1)])
    model.compile(SGD(0.1), "mse")
    training = keep_training(model)
    training.take((X[:40], NUMBERS[:40]))
    assert (training.values, training.batches) == ([], [])
    model.train_on_batch(X[:40], NUMBERS[:40])
    training.take((X[:40], NUMBERS[:40]))
    assert [len(training.values), len(training.batches)] == [4, 1]


def by_hand(model):
    for _ in range(8):
        for start in range(0, ROWS, SIZE):
            model.train_on_batch(X[start : start + SIZE], NUMBERS[start : start + SIZE])


def fitted(model):
    model.fit(X, NUMBERS, batch_size=SIZE, epochs=8, verbose=0)


@pytest.mark.parametrize("train", [fitted, by_hand])
def test_the_second_look_tries_them_after_a_run_that_did_not_learn(train):
    looking = ScriptObserver(looks_again=True)
    model = net()
    model.compile(SGD(0.1, clipnorm=1e-6), "mse")
    try:
        train(model)
    finally:
        looking.close()
    stage = looking.look_again(60)
    assert looking.faults == []
    assert "ran experiments on copies" in stage.detail
    (training,) = looking.trainings
    found = [finding for finding in looking.course(training).findings if finding.rule == "not-learning"]
    assert [(one.severity, one.evidence["best_experiment"]) for one in found] == [("warning", "no clipping")]
