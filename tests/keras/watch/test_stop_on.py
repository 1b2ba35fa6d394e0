"""`KerasCallback(stop_on=...)` undoes the step of a bad batch, which Keras has applied by then."""

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
    def end():
        raise diagnostics.TrainingStopped("seen by the run")

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
