"""A fixed batch and the weights of a Keras model over time: what is seen, and that `fit` stays the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import diagnostics
from tests.keras.watched import CLASSES, FEATURE_ROWS, FEATURES, LABELS, STEPS, Subclassed, fitted, functional

WORDS = ("cat", "dog", "bird")
ROOT = Path(__file__).parents[3]


def watched(make=functional, x=FEATURE_ROWS[:20], y=LABELS[:20], histograms=False, epochs=2, fit=None, **options):
    batch = None if x is None else diagnostics.FixedBatch(x, y, **options)
    callback = diagnostics.KerasCallback(quiet=True, fixed_batch=batch, histograms=histograms)
    model, history = fitted(make, callback, epochs=epochs, fit=fit)
    return model, history, callback.report()


@pytest.mark.parametrize("make", [functional, Subclassed])
def test_the_run_is_the_same_bit_for_bit(make):
    plain, plain_history = fitted(make)
    model, history, report = watched(make, histograms=True)
    assert report.faults == ()
    assert len(report.fixed_batch.looks) > 4
    assert history == plain_history
    assert all(np.array_equal(a, b) for a, b in zip(plain.get_weights(), model.get_weights(), strict=True))
    states = zip(plain.optimizer.variables, model.optimizer.variables, strict=True)
    assert all(np.array_equal(a, b) for a, b in states)


def test_predictions_stand_beside_targets_and_loss():
    model, _, report = watched(decode_target=WORDS.__getitem__)
    seen = report.fixed_batch
    assert [look.step for look in seen.looks] == [0, 1, 2, 5, 10, 2 * STEPS]
    assert (seen.size, len(seen.inputs)) == (20, 8)
    assert seen.targets == tuple(WORDS[label] for label in LABELS[:8])
    keras.utils.set_random_seed(1)
    for look, at in ((seen.looks[0], functional()), (seen.looks[-1], model)):
        outputs = at(FEATURE_ROWS[:20], training=False)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(LABELS[:20], outputs)
        assert look.loss == pytest.approx(float(loss), rel=1e-5)
        shares = keras.ops.convert_to_numpy(keras.ops.softmax(outputs[:8]))
        assert look.predictions == tuple(f"{WORDS[row.argmax()]} ({row.max():.0%})" for row in shares)
        assert look.right == tuple((shares.argmax(1) == LABELS[:8]).tolist())
    assert seen.looks[-1].loss < seen.looks[0].loss
    assert "A fixed batch over time" in report.rendered("html")


def test_a_model_without_weights_is_first_looked_at_after_its_first_step():
    assert [look.step for look in watched(Subclassed)[2].fixed_batch.looks][:3] == [1, 2, 5]


def test_steps_that_keras_takes_at_once_are_looked_at_between():
    def make():
        model = functional()
        compiled = model.compile
        model.compile = lambda *given, **options: compiled(*given, steps_per_execution=3, **options)
        return model

    steps = [look.step for look in watched(make)[2].fixed_batch.looks]
    assert steps[:2] == [0, 3]
    assert steps[-1] == 2 * STEPS


def test_targets_of_every_form_name_their_class():
    for y in (LABELS[:20], LABELS[:20, None], np.eye(CLASSES)[LABELS[:20]]):
        if y.shape[-1] == CLASSES:
            loss = keras.losses.CategoricalCrossentropy(from_logits=True)
            seen = watched(y=y, loss_fn=loss)[2].fixed_batch
        else:
            seen = watched(y=y)[2].fixed_batch
        assert seen.targets == tuple(map(str, LABELS[:8].tolist()))
        assert None not in seen.looks[-1].right


@pytest.mark.parametrize("from_logits", [False, True])
def test_the_one_unit_of_a_binary_classifier_is_shown_as_a_number(from_logits):
    keras.utils.set_random_seed(0)
    y = (FEATURE_ROWS[:, 0] > 0).astype(int)
    activation = None if from_logits else "sigmoid"
    model = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(1, activation=activation)])
    model.compile(keras.optimizers.Adam(0.1), keras.losses.BinaryCrossentropy(from_logits=from_logits))
    batch = diagnostics.FixedBatch(FEATURE_ROWS[:8], y[:8])
    callback = diagnostics.KerasCallback(quiet=True, fixed_batch=batch)
    model.fit(FEATURE_ROWS, y, epochs=5, verbose=0, callbacks=[callback])
    last = callback.report().fixed_batch.looks[-1]
    outputs = model.predict(FEATURE_ROWS[:8], verbose=0)[:, 0]
    assert last.right == tuple(((outputs > (0 if from_logits else 0.5)) == y[:8]).tolist())
    assert [float(text) for text in last.predictions] == pytest.approx(outputs.tolist(), rel=1e-3)


def test_texts_are_shown_as_they_are():
    texts = np.array(["good film", "bad film"] * 8)
    layer = keras.layers.TextVectorization(output_sequence_length=3)
    layer.adapt(texts)
    model = keras.Sequential(
        [layer, keras.layers.Embedding(6, 4), keras.layers.Flatten(), keras.layers.Dense(2, activation="softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    batch = diagnostics.FixedBatch(
        tf.constant(texts[:2]), np.array([1, 0]), decode_target=("bad", "good").__getitem__
    )
    callback = diagnostics.KerasCallback(quiet=True, fixed_batch=batch)
    model.fit(tf.data.Dataset.from_tensor_slices((texts, [1, 0] * 8)).batch(4), verbose=0, callbacks=[callback])
    seen = callback.report().fixed_batch
    assert (seen.inputs, seen.targets) == (("good film", "bad film"), ("good", "bad"))


def test_histograms_hold_every_weight():
    model, _, report = watched(x=None, histograms=True)
    first, last = report.histograms[0], report.histograms[-1]
    assert (first.step, last.step) == (0, 2 * STEPS)
    assert list(last.weights) == ["up", "norm", "head"]
    values = np.concatenate([np.ravel(w) for w in model.get_layer("head").get_weights()])
    assert last.weights["head"].counts.sum() == values.size
    assert last.weights["head"].total == pytest.approx(values.sum(), rel=1e-4)
    assert last.gradients == {}
    assert "weights of head: " in report.rendered("html")


def test_the_looks_reach_the_logger():
    given = []
    callback = diagnostics.KerasCallback(
        quiet=True,
        logger=lambda values, step: given.append((step, values)),
        fixed_batch=diagnostics.FixedBatch(FEATURE_ROWS[:4], LABELS[:4]),
    )
    fitted(callback=callback)
    steps = [step for step, values in given if "watch/fixed_batch_loss" in values]
    assert steps == [0, 1, 2, 5, 10, 2 * STEPS]


class TestWhatCannotBeShown:
    """Training goes on, and the report says why in a line."""

    def why(self, *given, **options):
        plain, _ = fitted()
        model, _, report = watched(functional, *given, **options)
        assert all(np.array_equal(a, b) for a, b in zip(plain.get_weights(), model.get_weights(), strict=True))
        assert report.faults == ()
        assert report.fixed_batch is None
        return next(stage.detail for stage in report.stages if stage.name == "fixed batch")

    def test_a_batch_that_does_not_fit_the_model(self):
        why = self.why(FEATURE_ROWS[:4, :5], LABELS[:4])
        assert why.startswith("the model raised ")
        assert "incompatible with the layer" in why or "expected shape" in why

    @pytest.mark.parametrize("name", ["decode", "decode_target"])
    def test_a_function_that_raises(self, name):
        def broken(_value):
            raise KeyError("no such word")

        assert self.why(**{name: broken}) == f"{name} raised KeyError: 'no such word'"

    def test_a_loss_that_raises(self):
        def broken(_targets, _outputs):
            raise ValueError("no")

        assert self.why(loss_fn=broken) == "loss_fn raised ValueError: no for it"


class TestRefuses:
    def refused(self, batch):
        with pytest.raises(diagnostics.InvalidInput) as error:
            diagnostics.KerasCallback(fixed_batch=batch() if callable(batch) else batch)
        return str(error.value)

    def test_what_is_no_batch(self):
        assert self.refused((1, 2)).startswith("KerasCallback() was given a tuple as fixed_batch.")

    def test_a_batch_without_an_array(self):
        assert "was given a str as inputs. It takes an array" in self.refused(diagnostics.FixedBatch("a text"))

    def test_targets_of_another_length(self):
        batch = diagnostics.FixedBatch(np.ones((4, 6)), np.ones(3))
        assert "inputs with 4 examples, and targets of shape (3,)" in self.refused(batch)


ON_TORCH = """
import json, keras, numpy as np, diagnostics
from tests.keras.run import on_torch

def fitted(callbacks):
    keras.utils.set_random_seed(3)
    model = on_torch.classifier()
    model.fit(*on_torch.data(), batch_size=32, epochs=2, verbose=0, callbacks=callbacks)
    return model

x, y = on_torch.data()
callback = diagnostics.KerasCallback(quiet=True, fixed_batch=diagnostics.FixedBatch(x[:4], y[:4]), histograms=True)
model, report = fitted([callback]), callback.report()
outputs = keras.ops.softmax(model(x[:4], training=False)).detach().numpy()
same = all(np.array_equal(a, b) for a, b in zip(fitted([]).get_weights(), model.get_weights(), strict=True))
print(json.dumps({
    "faults": report.faults,
    "same": same,
    "steps": [look.step for look in report.fixed_batch.looks],
    "said": report.fixed_batch.looks[-1].predictions,
    "expected": [f"{row.argmax()} ({row.max():.0%})" for row in outputs],
    "layers": len(report.histograms[-1].weights),
}))
"""


@pytest.mark.slow
def test_on_pytorch():
    environment = {**os.environ, "KERAS_BACKEND": "torch", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", ON_TORCH], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["faults"] == []
    assert told["same"]
    assert told["steps"] == [0, 1, 2, 5, 10, 20]
    assert told["said"] == told["expected"]
    assert told["layers"] == 2
