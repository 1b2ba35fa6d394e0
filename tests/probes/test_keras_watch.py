"""`diagnostics.KerasCallback`, on real models under `fit`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import diagnostics
from diagnostics.probes import keras_run

ROWS, FEATURES, CLASSES, BATCH = 104, 6, 3, 16
FEATURE_ROWS = np.random.default_rng(0).normal(size=(ROWS, FEATURES)).astype("float32")
LABELS = FEATURE_ROWS[:, :CLASSES].argmax(1)
STEPS = -(-ROWS // BATCH)  # in an epoch; the last batch is a half

GRADIENTS_UNSEEN = "Keras computes them inside its compiled step and does not show them"


def functional():
    inputs = keras.layers.Input((FEATURES,))
    hidden = keras.layers.Dense(16, activation="tanh", name="up")(inputs)
    hidden = keras.layers.Dropout(0.3)(keras.layers.BatchNormalization(name="norm")(hidden))
    return keras.Model(inputs, keras.layers.Dense(CLASSES, name="head")(hidden))


@keras.saving.register_keras_serializable("tests")
class Subclassed(keras.Model):
    """Makes its weights in the first step."""

    def __init__(self):
        super().__init__()
        self.up, self.drop, self.head = keras.layers.Dense(16), keras.layers.Dropout(0.3), keras.layers.Dense(3)

    def call(self, inputs, training=False):
        return self.head(self.drop(self.up(inputs), training=training))


class OwnStep(Subclassed):
    """Steps through code of its own and returns the loss of the batch."""

    def train_step(self, data):
        inputs, labels = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=labels, y_pred=self(inputs, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def fitted(
    make=functional, callback=None, *, data=None, optimizer=None, epochs=2, batch=BATCH, fit=None, **compiled
):
    keras.utils.set_random_seed(1)
    model = make()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer() if optimizer else keras.optimizers.Adam(1e-2), loss, **compiled)
    x, y = data() if callable(data) else data or (FEATURE_ROWS, LABELS)
    given = (x,) if y is None else (x, y)
    sized = {} if y is None else {"batch_size": batch}
    callbacks = [callback] if callback else None
    history = model.fit(*given, epochs=epochs, verbose=0, callbacks=callbacks, **sized, **(fit or {}))
    return model, history.history


def dataset():
    rows = tf.data.Dataset.from_tensor_slices((FEATURE_ROWS, LABELS))
    return rows.shuffle(ROWS, seed=0).batch(BATCH).prefetch(2), None


class Rows(keras.utils.PyDataset):
    def __len__(self):
        return ROWS // BATCH

    def __getitem__(self, number):
        part = slice(number * BATCH, (number + 1) * BATCH)
        return FEATURE_ROWS[part], LABELS[part]


def schedule():
    return keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 20))


def assert_same_bits(one, other):
    for bare, watched in (
        (one[0].variables, other[0].variables),
        (one[0].optimizer.variables, other[0].optimizer.variables),
    ):
        for before, after in zip(bare, watched, strict=True):
            assert np.asarray(before).tobytes() == np.asarray(after).tobytes(), before.path
    # Bytes, because NaN equals nothing.
    assert np.array(list(one[1].values())).tobytes() == np.array(list(other[1].values())).tobytes()


class TestChangesNothing:
    @pytest.mark.parametrize(
        "how",
        [
            {"fit": {"validation_data": (FEATURE_ROWS, LABELS)}},
            {"run_eagerly": True, "epochs": 1},
            {"steps_per_execution": 4},
            {"make": Subclassed, "data": dataset, "jit_compile": False},
            {"make": OwnStep, "data": lambda: (Rows(workers=1), None), "jit_compile": False},
            {"fit": {"class_weight": {0: 1.0, 1: 2.0, 2: 3.0}}, "jit_compile": False},
            {
                "optimizer": lambda: keras.optimizers.Adam(1e-2, gradient_accumulation_steps=3),
                "jit_compile": False,
            },
        ],
        ids=["plain", "eager", "several", "unbuilt", "own", "weighted", "accumulation"],
    )
    def test_fit_gives_the_same_bits_as_without(self, how):
        callback = diagnostics.KerasCallback(every=3, quiet=True)
        watched = fitted(callback=callback, **how)
        assert callback.report().faults == ()
        assert_same_bits(fitted(**how), watched)

    @pytest.mark.slow
    def test_not_even_under_xla(self):
        def small():
            return keras.Sequential([keras.layers.Input((FEATURES,)), keras.layers.Dense(CLASSES)])

        callback = diagnostics.KerasCallback(every=3, quiet=True)
        watched = fitted(small, callback, jit_compile=True)
        assert callback.report().faults == ()
        assert_same_bits(fitted(small, jit_compile=True), watched)

    @pytest.mark.slow
    def test_not_even_in_half_precision(self):
        keras.config.set_dtype_policy("mixed_float16")
        try:
            callback = diagnostics.KerasCallback(every=3, quiet=True)
            watched = fitted(callback=callback, jit_compile=False)
            assert callback.report().faults == ()
            assert_same_bits(fitted(jit_compile=False), watched)
        finally:
            keras.config.set_dtype_policy("float32")

    def test_not_even_where_a_broken_step_is_run_again(self):
        broken = FEATURE_ROWS.copy()
        broken[37, 2] = np.nan
        how = {"data": (broken, LABELS), "jit_compile": False, "fit": {"shuffle": False}}
        callback = diagnostics.KerasCallback(quiet=True)
        watched = fitted(callback=callback, **how)
        assert callback.report().origin.replayed
        assert_same_bits(fitted(**how), watched)

    def test_not_even_where_every_part_of_it_fails(self, monkeypatch):
        def broken(*_):
            raise ZeroDivisionError("on purpose")

        for part in ("_before", "_after", "_read", "_look_behind"):
            monkeypatch.setattr(keras_run.KerasRun, part, broken)
        callback = diagnostics.KerasCallback(quiet=True)
        watched = fitted(callback=callback, jit_compile=False)
        monkeypatch.undo()
        assert_same_bits(fitted(jit_compile=False), watched)
        assert set(callback.report().faults) == {
            "watching the steps ended: ZeroDivisionError: on purpose",
            "watching the readings ended: ZeroDivisionError: on purpose",
            "watching the origin ended: ZeroDivisionError: on purpose",
        }

    def test_the_model_gets_its_own_step_back(self):
        model, _ = fitted(callback=diagnostics.KerasCallback(quiet=True), epochs=1, jit_compile=False)
        assert type(model.train_function).__name__ == "function"

    def test_a_fit_that_failed_does_not_spoil_the_next(self):
        class Stop(keras.callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                raise RuntimeError("stop")

        callback = diagnostics.KerasCallback(quiet=True)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model = functional()
        model.compile("adam", loss, jit_compile=False)
        with pytest.raises(RuntimeError):
            model.fit(FEATURE_ROWS, LABELS, epochs=2, verbose=0, callbacks=[callback, Stop()])
        model.fit(FEATURE_ROWS, LABELS, epochs=1, verbose=0)
        assert callback.report().history.total_steps == 4
        model.fit(FEATURE_ROWS, LABELS, epochs=1, verbose=0, callbacks=[callback])
        assert callback.report().history.total_steps == 4
        assert type(model.train_function).__name__ == "function"


class TestHistory:
    def test_losses_are_those_of_each_batch(self):
        class Means(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                means.append(logs["loss"])

        means = []
        callback = diagnostics.KerasCallback(quiet=True)
        fitted(callback=callback, jit_compile=False)
        history = callback.report().history
        sizes = history.batch_sizes[:STEPS]
        assert sizes.tolist() == [BATCH] * (STEPS - 1) + [ROWS % BATCH]
        _, logs = fitted(callback=Means(), jit_compile=False)
        for epoch in range(2):
            part = slice(epoch * STEPS, (epoch + 1) * STEPS)
            sums = np.cumsum(history.losses[part] * sizes)
            np.testing.assert_allclose(sums / np.cumsum(sizes), means[part], rtol=1e-5)
            assert sums[-1] / ROWS == pytest.approx(logs["loss"][epoch], rel=1e-6)

    def test_holds_rates_updates_weights_memory_and_evaluations(self):
        callback = diagnostics.KerasCallback(every=5, quiet=True)
        model, logs = fitted(
            callback=callback, optimizer=schedule, jit_compile=False,
            fit={"validation_data": (FEATURE_ROWS, LABELS)},
        )  # fmt: skip
        history = callback.report().history
        assert (history.total_steps, history.steps.tolist()) == (2 * STEPS, list(range(2 * STEPS)))
        assert history.layers == ("up", "norm", "head")
        rates = [float(model.optimizer._learning_rate(step)) for step in range(2 * STEPS)]
        np.testing.assert_allclose(history.learning_rates[:, 0], rates, rtol=1e-6)
        assert history.sampled_steps.tolist() == [0, 1, 2, 4, 5, 10]
        assert ((history.update_ratios[:, [0, 2]] > 0) & (history.update_ratios[:, [0, 2]] < 1)).all()
        assert history.weight_norms[0, 1] == pytest.approx(4.0)  # 16 scales of 1, and shifts of 0
        assert (history.memory_of, bool((history.memory_bytes > 0).all())) == ("process", True)
        assert not history.gradient_known.any()
        assert history.evaluation_steps.tolist() == [STEPS - 1, 2 * STEPS - 1]
        assert history.evaluation_losses.tolist() == logs["val_loss"]
        assert len(set(history.batch_fingerprints[:STEPS].tolist())) == STEPS

    def test_update_ratios_are_those_of_the_step(self):
        class Weights(keras.callbacks.Callback):
            def on_train_batch_begin(self, batch, logs=None):
                before.append(np.asarray(self.model.get_layer("head").kernel).copy())

        before = []
        keras.utils.set_random_seed(1)
        model, callback = functional(), diagnostics.KerasCallback(every=2, quiet=True)
        model.get_layer("head").bias.trainable = False
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
        model.fit(FEATURE_ROWS, LABELS, batch_size=BATCH, verbose=0, callbacks=[Weights(), callback])
        history = callback.report().history
        for place, step in enumerate(history.sampled_steps[:3]):
            change = np.linalg.norm(before[step + 1] - before[step]) / np.linalg.norm(before[step])
            assert history.update_ratios[place, 2] == pytest.approx(change, rel=1e-4)

    def test_one_step_of_an_accumulation_has_several_passes(self):
        callback = diagnostics.KerasCallback(quiet=True)
        fitted(
            callback=callback, jit_compile=False,
            optimizer=lambda: keras.optimizers.Adam(1e-2, gradient_accumulation_steps=2),
        )  # fmt: skip
        history = callback.report().history
        assert (history.total_steps, set(history.passes.tolist())) == (STEPS, {2})
        assert (history.update_ratios > 0).all()


class TestReport:
    def test_is_handed_to_a_logger_step_by_step(self):
        logged = {}
        callback = diagnostics.KerasCallback(
            every=5, quiet=True, logger=lambda values, step: logged.setdefault(step, {}).update(values)
        )
        fitted(callback=callback, jit_compile=False)
        assert sorted(logged) == list(range(2 * STEPS))
        history = callback.report().history
        assert [logged[step]["watch/loss"] for step in range(2 * STEPS)] == history.losses.tolist()
        assert {"watch_update_ratio/up", "watch_weight_norm/head"} <= set(logged[10])

    def test_says_what_was_watched_and_what_keras_does_not_show(self):
        callback = diagnostics.KerasCallback(quiet=True)
        assert str(callback.report()).startswith("watched nothing: training has not begun")
        fitted(callback=callback, jit_compile=False)
        report = callback.report()
        assert report.title == f"watched {2 * STEPS} steps of Functional"
        assert report.ok
        stages = {stage.name: (stage.status, stage.detail) for stage in report.stages}
        assert stages["forward passes"] == ("passed", f"{2 * STEPS}, batches of up to {BATCH}")
        assert stages["loss"][1].endswith("; told from Keras' running mean, but for its rounding")
        assert stages["gradients"] == ("not judged", GRADIENTS_UNSEEN)
        assert stages["weights"] == ("passed", "kept, to run a broken step again")

    def test_says_what_is_lost_with_several_steps_at_once(self):
        callback = diagnostics.KerasCallback(quiet=True)
        fitted(callback=callback, steps_per_execution=4, jit_compile=False)
        report = callback.report()
        assert report.title == f"watched {2 * STEPS} steps of Functional"
        assert report.history.steps.tolist() == [0, 4, 7, 11]
        stages = {stage.name: stage.detail for stage in report.stages}
        assert stages["forward passes"] == (
            "Keras shows callbacks no batches, and here takes 4 at once (steps_per_execution)"
        )
        assert stages["updates"] == "Keras takes 4 steps at once (steps_per_execution)"

    def test_says_what_is_lost_with_batches_that_are_no_plain_tensors(self):
        class Padding(Subclassed):
            def call(self, inputs, training=False):
                padded = inputs.to_tensor(shape=(None, 3)) if isinstance(inputs, tf.RaggedTensor) else inputs
                return super().call(tf.cast(padded, tf.float32), training=training)

        def ragged():
            rows = tf.ragged.constant([[1, 2, 3][: row % 3 + 1] for row in range(64)])
            return tf.data.Dataset.from_tensor_slices((rows, LABELS[:64])).batch(BATCH), None

        callback = diagnostics.KerasCallback(quiet=True)
        watched = fitted(Padding, callback, data=ragged, jit_compile=False)
        assert_same_bits(fitted(Padding, data=ragged, jit_compile=False), watched)
        stages = {stage.name: stage.detail for stage in callback.report().stages}
        assert stages["forward passes"] == (
            "Keras shows callbacks no batches, and here uses such as cannot be handed on unchanged (TypeError: an "
            "element is a RaggedTensorSpec)"
        )
        assert callback.report().faults == ()

    def test_takes_the_loss_of_a_step_of_the_users_own_as_it_is(self):
        callback = diagnostics.KerasCallback(quiet=True)
        fitted(OwnStep, callback, jit_compile=False)
        report = callback.report()
        assert report.history.loss_known.all()
        stages = {stage.name: stage.detail for stage in report.stages}
        assert stages["loss"].endswith("; as OwnStep.train_step returns it, mean or not")

    def test_says_nothing_of_an_optimizer_that_is_not_the_one(self):
        class OwnOptimizer(OwnStep):
            def compile(self, optimizer, loss, **options):
                super().compile(loss=loss, **options)  # Keras gives it an rmsprop
                self.own = optimizer

            def train_step(self, data):
                inputs, labels = data
                with tf.GradientTape() as tape:
                    loss = self.compute_loss(y=labels, y_pred=self(inputs, training=True))
                self.own.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
                return {"loss": loss}

        callback = diagnostics.KerasCallback(quiet=True)
        keras.utils.set_random_seed(1)
        model = OwnOptimizer()
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(1e-2), loss, jit_compile=False)
        model.fit(FEATURE_ROWS, LABELS, batch_size=BATCH, verbose=0, callbacks=[callback])
        report = callback.report()
        assert (report.ok, report.faults) == (True, ())
        assert np.isnan(report.history.learning_rates).all()
        assert (report.history.update_ratios > 0).all()

    def test_stops_watching_and_not_training(self):
        callback = diagnostics.KerasCallback(stop_after=5, quiet=True)
        model, _ = fitted(callback=callback, jit_compile=False)
        assert callback.report().title == "watched 5 steps of Functional"
        assert int(model.optimizer.iterations) == 2 * STEPS

    def test_a_rate_of_nothing_changes_nothing(self):
        callback = diagnostics.KerasCallback(every=3, quiet=True)
        fitted(callback=callback, optimizer=lambda: keras.optimizers.SGD(0.0), jit_compile=False)
        found = {finding.rule: finding for finding in callback.report().findings}
        assert "The learning rate was 0 in all of them." in found["unchanged-parameters"].message

    def test_says_nothing_of_a_frozen_layer(self):
        def partly():
            model = functional()
            model.get_layer("up").trainable = False
            return model

        callback = diagnostics.KerasCallback(every=3, quiet=True)
        fitted(partly, callback, jit_compile=False)
        assert callback.report().ok
        assert callback.report().history.layers == ("norm", "head")


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
        assert "In step 0, log (Log) was the first to make NaN or inf" in found["non-finite-activations"].message
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
        assert "although the gradient that the optimizer stepped on was finite" in found["non-finite-loss"].message

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


class TestLogger:
    def test_gets_each_step_once_and_its_layers(self):
        given = []
        callback = diagnostics.KerasCallback(every=3, logger=lambda values, step: given.append((step, values)))
        fitted(callback=callback)
        assert [step for step, values in given if "watch/loss" in values] == list(range(2 * STEPS))
        assert "watch_update_ratio/head" in given[0][1]
        assert callback.report().faults == ()

    def test_that_raises_is_a_line_in_the_report(self):
        def broken(values, step):
            raise ConnectionError("the server is gone")

        callback = diagnostics.KerasCallback(logger=broken)
        fitted(callback=callback)
        assert callback.report().faults == (
            "handing over to the logger ended: ConnectionError: the server is gone",
        )
