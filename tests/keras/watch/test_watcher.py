"""`diagnostics.KerasCallback`, on real models under `fit`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import diagnostics
from diagnostics.collectors.keras.watch import watcher
from tests.keras.watched import (
    BATCH,
    CLASSES,
    FEATURE_ROWS,
    FEATURES,
    LABELS,
    ROWS,
    STEPS,
    OwnStep,
    Subclassed,
    fitted,
    functional,
)
from tests.support.marks import exhaustive

GRADIENTS_UNSEEN = "Keras computes them inside its compiled step and does not show them"


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
            *exhaustive(
                {"run_eagerly": True, "epochs": 1},
                {"steps_per_execution": 4},
                {"make": Subclassed, "data": dataset, "jit_compile": False},
                {"make": OwnStep, "data": lambda: (Rows(workers=1), None), "jit_compile": False},
                {"fit": {"class_weight": {0: 1.0, 1: 2.0, 2: 3.0}}, "jit_compile": False},
                {
                    "optimizer": lambda: keras.optimizers.Adam(1e-2, gradient_accumulation_steps=3),
                    "jit_compile": False,
                },
            ),
        ],
        ids=["plain", "eager", "several", "unbuilt", "own", "weighted", "accumulation"],
    )
    def test_fit_gives_the_same_bits_as_without(self, how):
        callback = diagnostics.KerasCallback(every=3, quiet=True)
        watched = fitted(callback=callback, **how)
        assert callback.report().faults == ()
        assert_same_bits(fitted(**how), watched)

    @pytest.mark.slow
    @pytest.mark.exhaustive
    def test_not_even_under_xla(self):
        def small():
            return keras.Sequential([keras.layers.Input((FEATURES,)), keras.layers.Dense(CLASSES)])

        callback = diagnostics.KerasCallback(every=3, quiet=True)
        watched = fitted(small, callback, jit_compile=True)
        assert callback.report().faults == ()
        assert_same_bits(fitted(small, jit_compile=True), watched)

    @pytest.mark.slow
    @pytest.mark.exhaustive
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
            monkeypatch.setattr(watcher.KerasWatcher, part, broken)
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
        assert callback.report().history.steps.total_steps == 4
        model.fit(FEATURE_ROWS, LABELS, epochs=1, verbose=0, callbacks=[callback])
        assert callback.report().history.steps.total_steps == 4
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
        sizes = history.steps.batch_sizes[:STEPS]
        assert sizes.tolist() == [BATCH] * (STEPS - 1) + [ROWS % BATCH]
        _, logs = fitted(callback=Means(), jit_compile=False)
        for epoch in range(2):
            part = slice(epoch * STEPS, (epoch + 1) * STEPS)
            sums = np.cumsum(history.losses.values[part] * sizes)
            np.testing.assert_allclose(sums / np.cumsum(sizes), means[part], rtol=1e-5)
            assert sums[-1] / ROWS == pytest.approx(logs["loss"][epoch], rel=1e-6)

    def test_holds_rates_updates_weights_memory_and_evaluations(self):
        callback = diagnostics.KerasCallback(every=5, quiet=True)
        model, logs = fitted(
            callback=callback, optimizer=schedule, jit_compile=False,
            fit={"validation_data": (FEATURE_ROWS, LABELS)},
        )  # fmt: skip
        history = callback.report().history
        assert (history.steps.total_steps, history.steps.steps.tolist()) == (2 * STEPS, list(range(2 * STEPS)))
        assert history.updates.layers == ("up", "norm", "head")
        rates = [float(model.optimizer._learning_rate(step)) for step in range(2 * STEPS)]
        np.testing.assert_allclose(history.steps.learning_rates[:, 0], rates, rtol=1e-6)
        assert history.updates.steps.tolist() == [0, 1, 2, 4, 5, 10]
        assert ((history.updates.ratios[:, [0, 2]] > 0) & (history.updates.ratios[:, [0, 2]] < 1)).all()
        assert history.updates.weight_norms[0, 1] == pytest.approx(4.0)  # 16 scales of 1, and shifts of 0
        assert (history.memory.holder, bool((history.memory.in_use > 0).all())) == ("process", True)
        assert history.gradients is None
        assert history.evaluations.steps.tolist() == [STEPS - 1, 2 * STEPS - 1]
        assert history.evaluations.losses.tolist() == logs["val_loss"]
        assert len(set(history.steps.batch_fingerprints[:STEPS].tolist())) == STEPS

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
        for place, step in enumerate(history.updates.steps[:3]):
            change = np.linalg.norm(before[step + 1] - before[step]) / np.linalg.norm(before[step])
            assert history.updates.ratios[place, 2] == pytest.approx(change, rel=1e-4)

    def test_one_step_of_an_accumulation_has_several_passes(self):
        callback = diagnostics.KerasCallback(quiet=True)
        fitted(
            callback=callback, jit_compile=False,
            optimizer=lambda: keras.optimizers.Adam(1e-2, gradient_accumulation_steps=2),
        )  # fmt: skip
        history = callback.report().history
        assert (history.steps.total_steps, set(history.steps.passes.tolist())) == (STEPS, {2})
        assert (history.updates.ratios > 0).all()


class TestReport:
    def test_is_handed_to_a_logger_step_by_step(self):
        logged = {}
        callback = diagnostics.KerasCallback(
            every=5, quiet=True, logger=lambda values, step: logged.setdefault(step, {}).update(values)
        )
        fitted(callback=callback, jit_compile=False)
        assert sorted(logged) == list(range(2 * STEPS))
        history = callback.report().history
        assert [logged[step]["watch/loss"] for step in range(2 * STEPS)] == history.losses.values.tolist()
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
        assert stages["loss"][1].endswith("; computed from Keras' running mean, up to its rounding")
        assert stages["gradients"] == ("not judged", GRADIENTS_UNSEEN)
        assert stages["weights"] == ("passed", "kept, to replay a failed step")

    def test_says_what_is_lost_with_several_steps_at_once(self):
        callback = diagnostics.KerasCallback(quiet=True)
        fitted(callback=callback, steps_per_execution=4, jit_compile=False)
        report = callback.report()
        assert report.title == f"watched {2 * STEPS} steps of Functional"
        assert report.history.steps.steps.tolist() == [0, 4, 7, 11]
        stages = {stage.name: stage.detail for stage in report.stages}
        assert stages["forward passes"] == (
            "Keras shows callbacks no batches, and this fit takes 4 at once (steps_per_execution)"
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
            "Keras shows callbacks no batches, and this fit uses batches that cannot be passed on unchanged "
            "(TypeError: an element is a RaggedTensorSpec)"
        )
        assert callback.report().faults == ()

    def test_takes_the_loss_of_a_step_of_the_users_own_as_it_is(self):
        callback = diagnostics.KerasCallback(quiet=True)
        fitted(OwnStep, callback, jit_compile=False)
        report = callback.report()
        assert len(report.history.losses.steps) == report.history.steps.total_steps
        stages = {stage.name: stage.detail for stage in report.stages}
        assert stages["loss"].endswith("; as OwnStep.train_step returns it; whether that is a mean is not known")

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
        assert np.isnan(report.history.steps.learning_rates).all()
        assert (report.history.updates.ratios > 0).all()

    def test_stops_watching_and_not_training(self):
        callback = diagnostics.KerasCallback(stop_after=5, quiet=True)
        model, _ = fitted(callback=callback, jit_compile=False)
        assert callback.report().title == "watched 5 steps of Functional"
        assert int(model.optimizer.iterations) == 2 * STEPS

    def test_a_rate_of_nothing_changes_nothing(self):
        callback = diagnostics.KerasCallback(every=3, quiet=True)
        fitted(callback=callback, optimizer=lambda: keras.optimizers.SGD(0.0), jit_compile=False)
        found = {finding.rule: finding for finding in callback.report().findings}
        assert "The learning rate was 0 at all of these steps." in found["unchanged-parameters"].message

    def test_says_nothing_of_a_frozen_layer(self):
        def partly():
            model = functional()
            model.get_layer("up").trainable = False
            return model

        callback = diagnostics.KerasCallback(every=3, quiet=True)
        fitted(partly, callback, jit_compile=False)
        assert callback.report().ok
        assert callback.report().history.updates.layers == ("norm", "head")


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
        assert callback.report().faults == ("logging stopped: ConnectionError: the server is gone",)


def test_a_model_that_is_wholly_frozen_is_watched_all_the_same():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.trainable = False
    model.compile("sgd", "mse")
    callback = diagnostics.KerasCallback(quiet=True)
    model.fit(np.zeros((8, 4)), np.zeros((8, 2)), batch_size=4, verbose=0, callbacks=[callback])
    report = callback.report()
    assert report.history.steps.total_steps == 2
    assert not report.faults


def test_texts_are_not_asked_for_numbers(capfd):
    texts = np.array(["good film", "bad film"] * 8)
    layer = keras.layers.TextVectorization(output_sequence_length=3)
    layer.adapt(texts)
    layers = [layer, keras.layers.Embedding(6, 4), keras.layers.Flatten(), keras.layers.Dense(2, "softmax")]
    model = keras.Sequential(layers)
    model.compile("adam", "sparse_categorical_crossentropy")
    callback = diagnostics.KerasCallback(quiet=True)
    model.fit(tf.data.Dataset.from_tensor_slices((texts, [1, 0] * 8)).batch(4), verbose=0, callbacks=[callback])
    assert callback.report().faults == ()
    assert "Cast string to float" not in capfd.readouterr().err  # TensorFlow's own log
