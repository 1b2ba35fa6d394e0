"""A bad batch ends `fit`, `train_on_batch` and loops of one's own, and its step leaves nothing behind."""

import contextlib
import json
import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest

import diagnostics
from diagnostics.run.observer import ScriptObserver

ROWS, SIZE, BAD = 192, 16, 5  # the step whose batch is broken


class Before(keras.callbacks.Callback):
    """Copies what a step begins with."""

    def on_train_batch_begin(self, batch, logs=None):
        self.values, self.batch = values(self.model), batch


def values(model):
    variables = [*model.variables, *model.optimizer.variables]
    return [keras.ops.convert_to_numpy(variable).copy() for variable in variables]


def fitted(callbacks, broken=True, folder=None, **options):
    keras.utils.set_random_seed(0)
    inputs = np.random.default_rng(0).normal(size=(ROWS, 8)).astype("float32")
    labels = inputs[:, :3].argmax(1)
    if broken:
        inputs[BAD * SIZE + 3] = np.nan
    layers = [keras.layers.Dense(16, "relu"), keras.layers.BatchNormalization(), keras.layers.Dropout(0.1)]
    model = keras.Sequential([keras.Input((8,)), *layers, keras.layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=False, **options)
    if folder is not None:
        saving = keras.callbacks.ModelCheckpoint(folder / "model.weights.h5", save_weights_only=True, save_freq=1)
        callbacks = [*callbacks, saving]
    try:
        model.fit(inputs, labels, batch_size=SIZE, shuffle=False, epochs=2, verbose=0, callbacks=callbacks)
    except diagnostics.TrainingStopped as stopped:
        return model, stopped
    return model, None


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}], ids=str)
def test_weights_optimizer_and_checkpoint_are_those_before_the_bad_batch(tmp_path, options):
    before = Before()
    model, stopped = fitted(
        [before, diagnostics.KerasCallback(stop_on="error", quiet=True)], folder=tmp_path, **options
    )
    assert before.batch == BAD
    assert same(before.values, values(model))
    assert stopped.report.findings[0].rule == "non-finite-inputs"
    assert stopped.report.batch().rows == (3,)
    weights = model.get_weights()
    model.load_weights(tmp_path / "model.weights.h5")
    assert same(weights, model.get_weights())
    assert all(np.isfinite(value).all() for value in weights)


def test_diagnose_run_does_the_same():
    before, run = Before(), ScriptObserver(on_broken=end)
    model, stopped = fitted([before])
    run.close()
    assert (str(stopped), before.batch) == ("seen by the run", BAD)
    assert same(before.values, values(model))


def test_a_healthy_fit_is_the_same_to_the_last_bit():
    plain, watched = fitted([], broken=False), fitted([diagnostics.KerasCallback(stop_on="error")], broken=False)
    assert watched[1] is None
    assert same(values(plain[0]), values(watched[0]))


def test_without_it_nothing_ends():
    model, stopped = fitted([diagnostics.KerasCallback(quiet=True)])
    assert stopped is None
    assert not all(np.isfinite(value).all() for value in model.get_weights())


LOOP = """
    import keras, numpy as np, tensorflow as tf
    keras.utils.set_random_seed(0)
    inputs = np.random.default_rng(0).normal(size=(384, 8)).astype("float32")
    labels = inputs[:, :3].argmax(1)
    layers = [keras.layers.Dense(16, "relu"), keras.layers.BatchNormalization(), keras.layers.Dropout(0.1)]
    model = keras.Sequential([keras.Input((8,)), *layers, keras.layers.Dense(3)])
    optimizer = keras.optimizers.Adam(1e-2)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def gradients(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(x, y):
        loss, grads = gradients(x, y)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    KIND
    for number in range(24):
        rows = slice(16 * number, 16 * number + 16)
        before = [variable.numpy() for variable in (*model.variables, *optimizer.variables)]
        try:
            step(inputs[rows], labels[rows])
        except Exception:
            print("caught")
    """
KINDS = {
    "eager": "",
    "function": "step = tf.function(step)",
    "gradients in a function": "gradients = tf.function(gradients)",
    "train_on_batch": "model.compile(optimizer, loss_of, jit_compile=False); step = model.train_on_batch",
    "train_on_batch, eager": "model.compile(optimizer, loss_of, run_eagerly=True); step = model.train_on_batch",
}
BROKEN = "inputs[163] = np.nan; "  # of step 10


def loop(kind, broken=""):
    return textwrap.dedent(LOOP).replace("KIND", broken + KINDS[kind])


def ran(text, **options):
    """Run a loop under a `ScriptObserver`; return the observer, and the loop's variables and names at its end."""
    run, names = ScriptObserver(**options), {}
    try:
        with contextlib.suppress(diagnostics.TrainingStopped):
            exec(text, names)
    finally:
        run.close()
    assert run.faults == []
    variables = [variable.numpy() for variable in (*names["model"].variables, *names["optimizer"].variables)]
    return run, variables, names


def end():
    raise diagnostics.TrainingStopped("seen by the run")


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_of_ones_own_ends_as_it_was_before_the_bad_batch(kind):
    _, variables, names = ran(loop(kind, BROKEN), on_broken=end)
    assert names["number"] == 10
    assert same(names["before"], variables)
    assert all(np.isfinite(value).all() for value in variables)


@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_loop_is_the_same_to_the_last_bit(kind):
    assert same(ran(loop(kind))[1], ran(loop(kind), on_broken=end)[1])


def test_a_step_that_the_rules_do_not_object_to_is_recorded_once():
    asked = []
    _, plain, _ = ran(loop("eager", BROKEN))
    run, watched, _ = ran(loop("eager", BROKEN), on_broken=lambda: asked.append(1))
    assert [value.tobytes() for value in watched] == [value.tobytes() for value in plain]
    assert (len(asked), run.watched()[0].history.steps.total_steps) == (8, 24)


def test_gradients_that_overflow_are_left_to_an_optimizer_that_scales_the_loss():
    scaled = "optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0**127); "
    text = loop("eager", scaled).replace("tape.gradient(loss,", "tape.gradient(optimizer.scale_loss(loss) * 4,")
    assert ran(text, on_broken=end)[2]["number"] == 23


def diagnose_run(folder, text, *options):
    (folder / "train.py").write_text(text)
    command = [sys.executable, "-m", "diagnostics", "run", *options, "--second-look", "off", "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done, json.loads((folder / "report.json").read_text())


def test_stop_on_ends_a_loop_of_ones_own_and_says_so(tmp_path):
    said = loop("function", BROKEN) + 'print("not stopped")\n'
    done, report = diagnose_run(tmp_path, said, "--stop-on", "error", "--output", "report.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "TrainingStopped: error: non-finite-loss in step 10." in done.stderr
    assert report["title"].endswith(", stopped by --stop-on error")
    assert [(one["rule"], one["step"]) for one in report["findings"]] == [("non-finite-loss", 10)]
    assert (report["exit_code"], report["crash"], report["faults"]) == (1, None, [])


@pytest.mark.parametrize("kind", ["eager", "train_on_batch"])
def test_max_steps_counts_the_steps_of_a_loop_of_ones_own(tmp_path, kind):
    options = "--max-steps", "5", "--fail-on", "never", "--output", "report.json"
    done, report = diagnose_run(tmp_path, loop(kind), *options)
    assert done.returncode == 0, done.stderr
    assert "stopped after the limit of 5 steps" in report["title"]
