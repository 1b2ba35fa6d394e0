"""Where the first NaN or inf of a `fit` came from, as `diagnostics.KerasCallback` finds it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import diagnostics
from tests.keras.watched import CLASSES, FEATURE_ROWS, FEATURES, LABELS, STEPS, OwnStep, fitted


@keras.saving.register_keras_serializable("tests")
class Length(keras.layers.Layer):
    """Its slope is infinite at 0."""

    def call(self, inputs):
        return tf.sqrt(tf.reduce_sum(tf.square(inputs), -1, keepdims=True))


@keras.saving.register_keras_serializable("tests")
class Log(keras.layers.Layer):
    def call(self, inputs):
        return tf.math.log(inputs)


def with_log():
    inputs = keras.layers.Input((FEATURES,))
    hidden = Log(name="log")(keras.layers.Dense(8, name="up")(inputs))
    return keras.Model(inputs, keras.layers.Dense(CLASSES, name="head")(hidden))


def with_length():
    inputs = keras.layers.Input((FEATURES,))
    hidden = Length(name="length")(keras.layers.Dense(4, kernel_initializer="zeros", name="up")(inputs))
    return keras.Model(inputs, keras.layers.Dense(CLASSES, name="head")(hidden))


class TestOrigin:
    def origin(self, *arguments, **options):
        callback = diagnostics.KerasCallback(quiet=True)
        fitted(*arguments, callback=callback, epochs=1, fit={"shuffle": False}, **options)
        report = callback.report()
        assert report.faults == ()
        return report.origin, {finding.rule: finding for finding in report.findings}

    def test_hands_out_the_batch_to_be_kept(self, tmp_path):
        broken = FEATURE_ROWS.copy()
        broken[37, 2] = np.nan
        callback = diagnostics.KerasCallback(quiet=True)
        fitted(callback=callback, data=(broken, LABELS), jit_compile=False, fit={"shuffle": False})
        failed = callback.report().failed
        x, y, weights = failed.args
        np.testing.assert_array_equal(x, broken[32:48])
        np.testing.assert_array_equal(y, LABELS[32:48])
        assert weights is None
        with np.load(failed.save(tmp_path / "batch.npz")) as saved:
            assert sorted(saved) == ["rows", "step", "x.0", "y.0"]
            assert (saved["step"], saved["rows"].tolist()) == (2, [5])
            np.testing.assert_array_equal(saved["x.0"], broken[32:48])

    @pytest.mark.parametrize("activation", ["tanh", "relu"])  # relu takes NaN for 0: the loss stays finite
    def test_in_the_batch(self, activation):
        broken = FEATURE_ROWS.copy()
        broken[37, 2] = np.nan

        def model():
            return keras.Sequential(
                [
                    keras.layers.Input((FEATURES,)),
                    keras.layers.Dense(16, activation=activation),
                    keras.layers.Dense(CLASSES),
                ]
            )

        origin, found = self.origin(model, data=(broken, LABELS), jit_compile=False)
        assert (origin.step, origin.kind, origin.inputs, origin.rows) == (2, "input", ("0",), (5,))
        assert found["non-finite-inputs"].step == 2

    def test_in_a_layer(self):
        origin, found = self.origin(with_log, jit_compile=False)
        assert (origin.step, origin.kind, origin.module, origin.module_kind) == (0, "forward", "log", "Log")
        assert [frame.module for frame in origin.frames] == ["up", "log"]
        said = found["non-finite-activations"].message
        assert "At step 0, the first NaN or inf came from log (Log), although its input was finite." in said
        assert "unchanged-parameters" not in found

    def test_in_the_loss(self):
        labels = LABELS.copy()
        labels[50] = 7
        origin, found = self.origin(data=(FEATURE_ROWS, labels), jit_compile=True)
        assert (origin.step, origin.kind) == (3, "loss")
        assert "Received a label value of 7" in found["non-finite-loss"].message

    def test_in_a_gradient(self):
        origin, found = self.origin(with_length, jit_compile=False)
        assert (origin.step, origin.kind, origin.module) == (0, "gradient", "length")
        assert origin.parameters == ("up/kernel", "up/bias")
        assert found["non-finite-gradients"].step == 0

    def test_in_the_update(self):
        origin, found = self.origin(optimizer=lambda: keras.optimizers.SGD(float("inf")), jit_compile=False)
        assert (origin.step, origin.kind) == (0, "optimizer step")
        assert "although the gradient was finite" in found["non-finite-loss"].message

    def test_in_the_very_last_update(self):
        class Late(keras.optimizers.schedules.LearningRateSchedule):
            def __call__(self, step):
                return tf.where(step < STEPS - 1, 0.1, np.inf)

            def get_config(self):
                return {}

        origin, _ = self.origin(optimizer=lambda: keras.optimizers.SGD(Late()), jit_compile=False)
        assert (origin.step, origin.kind) == (STEPS - 1, "optimizer step")

    def test_is_not_known_where_keras_shows_no_batches(self):
        broken = FEATURE_ROWS.copy()
        broken[37, 2] = np.nan
        origin, found = self.origin(data=(broken, LABELS), steps_per_execution=4, jit_compile=False)
        assert (origin.step, origin.kind, origin.replayed) == (0, None, False)
        assert "takes 4 at once (steps_per_execution)" in found["non-finite-loss"].message

    def test_in_a_step_of_the_users_own(self):
        class Broken(OwnStep):
            def call(self, inputs, training=False):
                return tf.math.log(super().call(inputs, training=training) - 1e3)

        def built():
            model = Broken()
            model(FEATURE_ROWS[:2])
            return model

        origin, _ = self.origin(built, jit_compile=False)
        assert (origin.step, origin.kind, origin.module) == (0, "forward", "")
