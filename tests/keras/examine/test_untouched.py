"""`examine` on Keras models leaves all, bit for bit, as it was."""

import random
import warnings

import numpy as np
import pytest

import diagnostics
from tests.keras.programs import (
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
from tests.support.marks import quick


def warn_of_something():
    warnings.warn("something", stacklevel=1)


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

    @pytest.mark.parametrize("options", quick([{}, {"jit_compile": True}, {"run_eagerly": True}], {}))
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

    @pytest.mark.exhaustive
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

    def test_a_generator_of_a_numpy_function_goes_on_where_it_was(self):
        rng = np.random.default_rng(3)

        def noisy(x):
            return x + rng.normal(size=x.shape).astype("float32")

        rows = tf.data.Dataset.from_tensor_slices((X, Y))
        rows = rows.map(lambda x, y: (tf.ensure_shape(tf.numpy_function(noisy, [x], tf.float32), (FEATURES,)), y))
        state = rng.bit_generator.state
        assert stages(diagnostics.examine(mlp(), rows.batch(16)))["one-batch overfit"] == "passed"
        assert rng.bit_generator.state == state

    def test_a_dataset_that_counts_its_reads_counts_none(self):
        class Counting(Batches):
            reads = 0

            def __getitem__(self, index):
                self.reads += 1
                return super().__getitem__(index)

        data = Counting()
        assert stages(diagnostics.examine(mlp(), data))["one-batch overfit"] == "passed"
        assert data.reads == 0

    def test_a_stream_that_can_be_read_once_is_not_read(self):
        stream = iter(zip(X, Y, strict=True))
        signature = (tf.TensorSpec((FEATURES,)), tf.TensorSpec((), tf.int64))
        data = tf.data.Dataset.from_generator(lambda: stream, output_signature=signature).batch(16)
        with pytest.raises(diagnostics.InvalidInput, match=r"examine\(model, list\(dataset.take\(4\)\)\)"):
            diagnostics.examine(mlp(), data)
        assert len(list(stream)) == ROWS

    def test_a_generator_within_the_model_goes_on_where_it_was(self):
        class Noise(layers.Layer):
            def __init__(self):
                super().__init__()
                self.rng = np.random.default_rng(3)

            def call(self, inputs):
                return inputs + self.rng.normal(scale=1e-3)

        noise = Noise()
        model = keras.Sequential([layers.Input((FEATURES,)), noise, layers.Dense(CLASSES)])
        model.compile("adam", from_logits())
        state = noise.rng.bit_generator.state
        diagnostics.examine(model, (X, Y))
        assert noise.rng.bit_generator.state == state

    def test_shows_each_warning_as_often_as_without(self):
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("default")
            for examined in (False, True):
                if examined:
                    diagnostics.examine(mlp(), (X, Y))
                warn_of_something()
        assert [str(warning.message) for warning in shown] == ["something"]

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
