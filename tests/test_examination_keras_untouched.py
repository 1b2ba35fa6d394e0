"""`examine` on Keras models leaves all, bit for bit, as it was."""

import random

import numpy as np
import pytest

import diagnostics
from tests.keras_programs import (
    CLASSES,
    FEATURES,
    ROWS,
    Batches,
    X,
    Y,
    from_logits,
    keras,
    layers,
    mlp,
    rules,
    shuffled,
    stages,
    tf,
)


def state_of(model):
    optimizer = [v.numpy() for v in model.optimizer.variables]
    metrics = [v.numpy() for metric in model.metrics for v in metric.variables]
    return [v.numpy() for v in model.variables], optimizer, metrics


def assert_equal(before, after):
    for one, other in zip(before, after, strict=True):
        assert len(one) == len(other)
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def lively():
    """A model with dropout, batch norm and two losses: all that keeps a state."""
    inputs = layers.Input((FEATURES,))
    body = layers.Dropout(0.3)(layers.BatchNormalization()(layers.Dense(16, activation="relu")(inputs)))
    model = keras.Model(inputs, {"kind": layers.Dense(CLASSES)(body), "size": layers.Dense(1)(body)})
    model.compile(
        keras.optimizers.Adam(1e-3), {"kind": from_logits(), "size": "mse"}, metrics={"kind": ["accuracy"]}
    )
    return model, (X, {"kind": Y, "size": X[:, :1]})


class TestUntouched:
    def test_weights_optimizer_and_metrics_stay_as_they_are(self):
        model, data = lively()
        model.fit(*data, epochs=1, verbose=0)
        before = state_of(model)
        assert stages(diagnostics.examine(model, data))["one-batch overfit"] == "passed"
        assert_equal(before, state_of(model))

    @pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"run_eagerly": True}])
    def test_fit_afterwards_gives_the_same_weights_as_fit_without(self, options):
        def train(examined):
            keras.utils.set_random_seed(7)
            model = keras.Sequential(
                [layers.Input((FEATURES,)), layers.Dense(16), layers.Dropout(0.3), layers.Dense(CLASSES)]
            )
            model.compile(keras.optimizers.Adam(1e-2), from_logits(), metrics=["accuracy"], **options)
            data = shuffled()
            if examined:
                assert stages(diagnostics.examine(model, data))["one-batch overfit"] == "passed"
            history = model.fit(data, epochs=2, verbose=0).history
            following = layers.Dense(4)
            following.build((None, 4))
            return (
                [v.numpy() for v in (*model.variables, *model.optimizer.variables, *following.variables)],
                list(history.values()),
                [keras.random.normal((3,)), tf.random.normal((3,)), np.random.rand(3), random.random()],
                [following.name.rpartition("_")[2]],
            )

        keras.backend.clear_session()
        without = train(examined=False)
        keras.backend.clear_session()
        assert_equal(without, train(examined=True))

    def test_a_model_with_two_losses_fits_the_same(self):
        def train(examined):
            keras.utils.set_random_seed(7)
            model, data = lively()
            if examined:
                diagnostics.examine(model, data)
            history = model.fit(*data, epochs=2, verbose=0).history
            return [[v.numpy() for v in model.variables], list(history), list(history.values())]

        assert_equal(train(examined=False), train(examined=True))

    def test_a_shuffled_dataset_goes_on_where_it_was(self):
        def order(examined):
            keras.utils.set_random_seed(7)
            dataset = tf.data.Dataset.range(ROWS).map(lambda i: (tf.gather(X, i), tf.gather(Y, i))).shuffle(ROWS)
            dataset = dataset.batch(16)
            epochs = [np.concatenate([y for _, y in dataset])]
            if examined:
                diagnostics.examine(mlp(), dataset)
            return [*epochs, np.concatenate([y for _, y in dataset]), np.concatenate([y for _, y in dataset])]

        without, examined = order(False), order(True)
        assert all(np.array_equal(a, b) for a, b in zip(without, examined, strict=True))
        assert not np.array_equal(without[0], without[1])

    def test_a_generator_inside_the_data_goes_on_where_it_was(self):
        data = Batches()
        state = data.rng.bit_generator.state
        diagnostics.examine(mlp(), data)
        assert data.rng.bit_generator.state == state

    def test_after_a_stage_that_found_an_error(self):
        model = mlp(outputs=2, jit_compile=True)
        before = state_of(model)
        assert "labels-out-of-range" in rules(diagnostics.examine(model, (X, Y)))
        assert_equal(before, state_of(model))
        model.compile(keras.optimizers.Adam(1e-3), from_logits())
        model.fit(X, Y % 2, epochs=1, verbose=0)

    def test_examining_twice_gives_the_same_report(self):
        model, data = mlp(), shuffled()
        reports = [diagnostics.examine(model, data).to_json() for _ in range(2)]
        assert reports[0] == reports[1]
