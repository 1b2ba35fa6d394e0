"""`examine` on Keras models: what it finds, and what it refuses."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

import diagnostics
from diagnostics import InvalidInput
from diagnostics.collectors.keras.replayable import shuffles
from diagnostics.facts.loss_call import LossCalls
from diagnostics.facts.loss_contracts import KERAS
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


@pytest.mark.parametrize("name", KERAS)
def test_a_contract_names_what_keras_has(name):
    contract, losses = KERAS[name], keras.losses
    assert list(inspect.signature(getattr(losses, name)).parameters)[:2] == [contract.target, contract.prediction]
    assert issubclass(getattr(losses, contract.module), losses.Loss)


class TestWalk:
    @pytest.mark.parametrize("data", [lambda: (X, Y), shuffled, Batches], ids=["arrays", "tf.data", "PyDataset"])
    def test_a_sound_program_passes_every_stage(self, data):
        report = diagnostics.examine(mlp(), data())
        assert rules(report) == [], str(report)
        assert list(stages(report).values()) == ["passed"] * 6 + ["not judged"]

    def test_says_what_it_saw(self):
        report = diagnostics.examine(mlp(), (X, Y))
        assert report.title == "examined Sequential with arrays"
        said = [stage.detail for stage in report.stages]
        assert said[:2] == [
            "160 rows, 160 read; a model of 515 parameters",
            "32 examples: input (32, 12), target (32,)",
        ]
        assert said[3:5] == ["4 of 4 trainable parameters get a gradient", "Adam with learning rate 0.001"]

    @pytest.mark.parametrize("options", [{"run_eagerly": True}, {"jit_compile": True}], ids=["eager", "xla"])
    def test_works_however_the_model_was_compiled(self, options):
        report = diagnostics.examine(mlp(**options), (X, Y))
        assert rules(report) == [], str(report)
        assert stages(report)["one-batch overfit"] == "passed"

    def test_works_in_mixed_precision(self):
        before = keras.mixed_precision.dtype_policy()
        keras.mixed_precision.set_global_policy("mixed_float16")
        try:
            report = diagnostics.examine(mlp(), (X, Y))
        finally:
            keras.mixed_precision.set_global_policy(before)
        assert rules(report) == [], str(report)
        assert stages(report)["one-batch overfit"] == "passed"

    def test_a_model_without_weights_yet_is_built_a_second_time_and_stays_without(self):
        model = keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(CLASSES)])
        model.compile(keras.optimizers.Adam(1e-3), from_logits())
        report = diagnostics.examine(model, (X, Y))
        assert rules(report) == [], str(report)
        assert stages(report)["one-batch overfit"] == "passed"
        assert not model.built

    def test_a_model_without_weights_that_cannot_be_built_again_is_examined_as_far_as_possible(self):
        class Wrapped(keras.Model):
            def __init__(self, before):
                super().__init__()
                self.before, self.head = before, layers.Dense(CLASSES)

            def call(self, inputs):
                return self.head(self.before(inputs))

        model = Wrapped(lambda inputs: inputs)
        model.compile(keras.optimizers.Adam(1e-3), from_logits())
        report = diagnostics.examine(model, (X, Y))
        assert stages(report)["forward and loss"] == "not judged"
        assert report.stages[2].detail == (
            "the model has no weights yet, making them would change it, and it cannot be built a second time "
            "(NotImplementedError): call it once on a batch, model(x), before it is examined"
        )
        model(X[:2])
        assert stages(diagnostics.examine(model, (X, Y)))["one-batch overfit"] == "passed"

    def test_a_train_step_of_its_own_is_not_run(self):
        class Own(keras.Model):
            def train_step(self, data):
                raise AssertionError("it was run")

        inputs = layers.Input((FEATURES,))
        model = Own(inputs, layers.Dense(CLASSES)(inputs))
        model.compile("adam")
        report = diagnostics.examine(model, (X, Y))
        assert rules(report) == []
        assert report.stages[2].detail == (
            "Own has a train_step of its own: what its loss is cannot be known without taking a step, so loss, "
            "backward and overfit are left out"
        )

    def test_prints_nothing(self, capfd):
        diagnostics.examine(mlp(last="softmax"), (X, Y))
        assert capfd.readouterr() == ("", "")


class TestFindings:
    def test_logits_under_a_loss_named_by_a_string(self):
        report = diagnostics.examine(mlp(loss="sparse_categorical_crossentropy"), (X, Y))
        assert "logits-as-probabilities" in rules(report)
        assert 'the loss ("sparse_categorical_crossentropy")' in report.findings[0].message

    def test_softmax_under_from_logits_is_undone_by_keras_and_left_alone(self):
        assert rules(diagnostics.examine(mlp(last="softmax"), (X, Y))) == []

    def test_a_label_out_of_range_is_found_before_the_loss_would_raise(self):
        report = diagnostics.examine(mlp(outputs=2), (X, Y))
        assert rules(report) == ["labels-out-of-range"]
        assert report.findings[0].fix == "keras.layers.Dense(3) as the last layer"
        assert stages(report)["forward and loss"] == "stopped"
        assert report.crash is None

    def test_under_xla_it_is_named_together_with_the_loss_that_it_makes(self):
        report = diagnostics.examine(mlp(outputs=2, jit_compile=True), (X, Y))
        assert rules(report) == ["labels-out-of-range"]
        (loss,) = report.findings[0].consequences
        assert loss.rule == "non-finite-loss"
        assert loss.evidence["shared"] == "All of them have label 2, and no other example does."
        assert stages(report)["forward and loss"] == "stopped"
        assert stages(report)["backward"] == "not reached"

    def test_labels_among_the_inputs(self):
        inputs = layers.Input((FEATURES,), name="features")
        model = keras.Model({"features": inputs}, layers.Dense(CLASSES)(inputs))
        model.compile(keras.optimizers.Adam(1e-3), from_logits())
        dataset = tf.data.Dataset.from_tensor_slices({"features": X, "labels": Y}).batch(16)
        assert "labels-in-inputs" in rules(diagnostics.examine(model, dataset))

    def test_a_loss_that_broadcasts(self):
        class Squared(keras.losses.Loss):
            def call(self, y_true, y_pred):
                return keras.ops.mean((y_true - y_pred) ** 2)

        report = diagnostics.examine(mlp(outputs=1, loss=Squared()), (X, X[:, 0]))
        assert "broadcast-loss" in rules(report)

    @pytest.mark.parametrize("outputs", [1, 4])
    def test_an_answer_for_each_step_and_one_target(self, outputs):
        model = keras.Sequential([layers.Input((6, 3)), layers.GRU(8, return_sequences=True)])
        model.add(layers.Dense(outputs))
        model.compile(keras.optimizers.Adam(1e-3), "mse")
        series = np.random.default_rng(0).normal(size=(32, 6, 3)).astype(np.float32)
        targets = series.sum(axis=1)[:, :1] if outputs == 1 else np.repeat(series[..., :1], 4, axis=-1)
        assert ("broadcast-loss" in rules(diagnostics.examine(model, (series, targets)))) == (outputs == 1)

    @pytest.mark.parametrize(("buffer", "shuffled"), [(None, None), (4, False), (500, True)])
    def test_small_buffers_do_not_shuffle(self, buffer, shuffled):
        rows = tf.data.Dataset.range(1000)
        assert shuffles((rows if buffer is None else rows.shuffle(buffer)).batch(10)) is shuffled

    def test_the_arguments_of_a_divergence(self):
        targets = np.full((len(X), 3), 1 / 3, np.float32)
        report = diagnostics.examine(mlp(outputs=3, loss="kl_divergence"), (X, targets))
        ((call,),) = (fact.calls for fact in report.facts if isinstance(fact, LossCalls))
        assert (call.function, call.whole) == ("kl_divergence", True)
        assert (call.prediction.shape, call.target.ends[0]) == ((32, 3), pytest.approx(1 / 3))

    def test_keras_own_loss_does_not_broadcast(self):
        assert rules(diagnostics.examine(mlp(outputs=1, loss="mse"), (X, X[:, 0]))) == []

    def test_units_that_start_alike(self):
        model = keras.Sequential(
            [
                layers.Input((FEATURES,)),
                layers.Dense(16, activation="tanh", kernel_initializer=keras.initializers.Constant(0.1)),
                layers.Dense(CLASSES, kernel_initializer="zeros"),
            ]
        )
        model.compile(keras.optimizers.Adam(1e-3), from_logits())
        assert "symmetric-initialization" in rules(diagnostics.examine(model, (X, Y)))

    def test_rows_sorted_by_label(self):
        order = np.argsort(Y, kind="stable")
        dataset = tf.data.Dataset.from_tensor_slices((X[order], Y[order])).batch(8)
        assert "sorted-by-label" in rules(diagnostics.examine(mlp(), dataset))

    def test_small_batches_of_rows_sorted_by_label(self):
        """The first sixteen end where the second class begins."""
        labels = np.repeat(np.arange(CLASSES), 140)
        rows = np.random.default_rng(0).normal(size=(len(labels), FEATURES)).astype("float32")
        dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).shuffle(32).batch(8)
        found = [one for one in diagnostics.examine(mlp(), dataset).findings if one.rule == "sorted-by-label"]
        assert [one.evidence["num_classes"] for one in found] == [3]

    def test_evaluation_rows_that_stand_in_the_training_set(self):
        report = diagnostics.examine(mlp(), (X[:100], Y[:100]), evaluation=(X[80:], Y[80:]))
        assert rules(report) == ["leaked-evaluation-rows"]

    def test_sample_weights_and_penalties_are_no_reason_to_complain(self):
        assert rules(diagnostics.examine(mlp(), (X, Y, np.linspace(0.5, 2, ROWS)))) == []
        for strength in (1e-4, 1.0):  # a small one leaves the loss recognisable, a large one does not
            model = keras.Sequential(
                [
                    layers.Input((FEATURES,)),
                    layers.Dense(32, activation="relu", kernel_regularizer=keras.regularizers.L2(strength)),
                    layers.Dense(CLASSES),
                ]
            )
            model.compile(keras.optimizers.Adam(1e-3), from_logits())
            report = diagnostics.examine(model, (X, Y))
            assert rules(report) == [], str(report)
            assert ("cross entropy" in report.stages[2].detail) == (strength < 1)

    def test_units_that_a_penalty_silences_in_training_did_read_the_input(self):
        class Penalty(layers.Layer):
            def call(self, inputs):
                self.add_loss(keras.ops.sum(inputs) * 0.1)
                return inputs

        pixels = np.random.default_rng(0).random((ROWS, 784), dtype=np.float32)
        model = keras.Sequential(
            [layers.Input((784,)), layers.Dense(8, activation="relu"), Penalty(), layers.Dense(CLASSES)]
        )
        model.compile(keras.optimizers.RMSprop(1e-3), from_logits())
        report = diagnostics.examine(model, (pixels, Y))
        assert "ignores-input" not in rules(report)
        assert stages(report)["one-batch overfit"] == "passed"


def refused(*arguments, **named):
    with pytest.raises(InvalidInput) as raised:
        diagnostics.examine(*arguments, **named)
    return str(raised.value)


PASS_DATA = (
    "Pass what fit is given: a tf.data.Dataset or a keras.utils.PyDataset, examine(model, dataset), or arrays, "
    "examine(model, (x, y))."
)


class TestArguments:
    def test_a_model_that_is_not_compiled(self):
        model = keras.Sequential([layers.Input((FEATURES,)), layers.Dense(CLASSES)])
        assert refused(model, (X, Y)) == (
            "examine() was given the Keras model Sequential, which is not compiled: neither its loss nor its "
            "optimizer is known. Call model.compile(optimizer=..., loss=...) first, as for fit."
        )

    def test_no_data(self):
        assert refused(mlp()) == f"examine() was given the Keras model Sequential and no data. {PASS_DATA}"

    def test_a_loss_and_an_optimizer_apart(self):
        assert refused(mlp(), (X, Y), from_logits(), keras.optimizers.Adam()) == (
            "examine() was given the Keras model Sequential together with loss_fn and optimizer. A compiled model "
            "brings its loss and its optimizer along: examine(model, data)."
        )

    def test_inputs_and_target_apart(self):
        assert refused(mlp(), X, Y) == (
            "examine() was given the Keras model Sequential and its data in two arguments. Pass inputs and target "
            "as one: examine(model, (x, y))."
        )

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (3, "an int as data, which is not data that is examined with a Keras model."),
            ("train.csv", "a str as data, which is not data that is examined with a Keras model."),
            ((X, "label"), "a tuple as data, and not all in it is an array."),
            ([], "a list as data, which is not a list of batches (x, y)."),
            ([1, 2], "a list as data, which is not a list of batches (x, y)."),
            (
                ((X, Y) for _ in range(3)),
                "a generator as data: reading from it would take that away from training.",
            ),
        ],
        ids=["int", "str", "tuple", "empty list", "list", "generator"],
    )
    def test_data_that_is_none(self, data, said):
        assert refused(mlp(), data) == f"examine() was given {said} {PASS_DATA}"

    def test_evaluation_data_that_is_none(self):
        assert refused(mlp(), (X, Y), evaluation=5) == (
            "examine() was given an int as evaluation, which is not data that is examined with a Keras model. "
            + PASS_DATA
        )

    @pytest.mark.parametrize(("backend", "named"), [("jax", "JAX"), ("torch", "PyTorch")])
    def test_another_backend(self, backend, named, monkeypatch):
        monkeypatch.setattr(keras.backend, "backend", lambda: backend)
        assert refused(mlp(), (X, Y)) == (
            f"examine() was given the Keras model Sequential, and Keras runs on {named} here. That is not "
            "supported yet; Keras on TensorFlow is: set KERAS_BACKEND=tensorflow in the environment before Keras "
            "is imported."
        )

    @pytest.mark.slow
    @pytest.mark.exhaustive  # it starts Keras again; `test_another_backend` stands for it
    def test_a_real_model_on_the_torch_backend_is_taken_for_one_of_keras(self):
        code = (
            "import keras, numpy as np, diagnostics\n"
            "model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])\n"
            "model.compile('sgd', 'mse')\ntry: diagnostics.examine(model, (np.ones((4, 2)), np.ones((4, 1))))\n"
            "except diagnostics.InvalidInput as error: print(error)"
        )
        environment = {**os.environ, "KERAS_BACKEND": "torch"}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
        )
        assert "Keras runs on PyTorch here. That is not supported yet" in done.stdout, done.stderr
