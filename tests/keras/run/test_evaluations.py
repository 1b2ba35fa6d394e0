"""The inputs of an evaluation are compared with those that `fit` drew."""

import numpy as np
import pytest

from diagnostics.facts.course import AccuracyHistory
from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import GRAPH, indices, keras, layers, tf

ROWS = np.random.default_rng(0).normal(size=(128, 6)).astype("float32")
RAW = (300 + np.geomspace(5, 90, 6) * ROWS).astype("float32")
LABELS = np.arange(128) % 3


def stream(rows, labels):
    return tf.data.Dataset.from_tensor_slices((rows, labels)).shuffle(64).batch(32)


def observed(script, stage="evaluation"):
    """Return the findings of a script about its evaluation, or another stage; it gets a model."""
    run = ScriptObserver()
    try:
        model = keras.Sequential([layers.Input((6,)), layers.Dense(3)])
        model.compile("sgd", indices(), **GRAPH)
        script(model)
    finally:
        run.close()
    assert run.faults == []
    return [finding for report in run.examined for finding in report.findings if finding.stage == stage]


def fit(model, data=(ROWS, LABELS), **options):
    given = data if isinstance(data, tuple) else (data,)
    model.fit(*given, batch_size=None if len(given) == 1 else 32, epochs=2, verbose=0, **options)


@pytest.mark.parametrize("data", [(ROWS, LABELS), stream(ROWS, LABELS)], ids=["arrays", "shuffled dataset"])
def test_names_validation_data_of_another_scale(data):
    (finding,) = observed(lambda model: fit(model, data, validation_data=(RAW, LABELS)))
    assert (finding.rule, finding.severity) == ("evaluation-mismatch", "warning")
    assert finding.fix.startswith("scale x_test exactly like x_train")
    assert observed(lambda model: fit(model, data, validation_data=(ROWS[:64], LABELS[:64]))) == []


@pytest.mark.parametrize("method", ["evaluate", "predict"])
def test_names_an_evaluation_after_the_fit(method):
    def script(model, rows):
        fit(model)
        model.evaluate(rows, LABELS, verbose=0) if method == "evaluate" else model.predict(x=rows, verbose=0)

    assert [finding.rule for finding in observed(lambda model: script(model, RAW))] == ["evaluation-mismatch"]
    assert observed(lambda model: script(model, ROWS)) == []


@pytest.mark.parametrize("copies", [1, 4])
def test_names_evaluation_rows_that_are_jittered_copies_of_training_rows(copies):
    generator = np.random.default_rng(2)
    rows = np.repeat(generator.normal(size=(1200 // copies, 6)), copies, axis=0)
    rows = generator.permutation(rows + 0.02 * generator.normal(size=rows.shape)).astype("float32")
    labels = np.arange(1200) % 3

    def script(model):
        model.fit(rows[:900], labels[:900], batch_size=32, epochs=2, verbose=0)
        model.evaluate(rows[900:], labels[900:], verbose=0)

    found = [finding.rule for finding in observed(script, "data")]
    assert found == (["leaked-evaluation-rows"] if copies > 1 else [])


def test_reads_no_generator():
    read = []

    def rows():
        read.append(len(read))
        yield RAW[:32], LABELS[:32]

    def script(model):
        fit(model)
        model.evaluate(rows(), verbose=0)

    assert observed(script) == []
    assert read == [0]


@pytest.mark.parametrize("kind", ["arrays", "dataset", "split"])
def test_reads_the_accuracy_of_epochs_and_the_labels_of_their_evaluation(kind):
    run = ScriptObserver()
    try:
        model = keras.Sequential([layers.Input((6,)), layers.Dense(3)])
        model.compile("sgd", indices(), metrics=["accuracy"], **GRAPH)
        held_out = tf.data.Dataset.from_tensor_slices((ROWS[96:], LABELS[96:])).batch(16)
        given = {
            "arrays": {"validation_data": (ROWS[96:], LABELS[96:])},
            "dataset": {"validation_data": held_out},
            "split": {"validation_split": 0.25},
        }
        logged = model.fit(ROWS, LABELS, epochs=2, batch_size=32, verbose=0, **given[kind]).history
    finally:
        run.close()
    assert run.faults == []
    (accuracy,) = [fact for report in run.examined for fact in report.facts if isinstance(fact, AccuracyHistory)]
    assert (accuracy.name, accuracy.labels.tolist()) == ("accuracy", np.bincount(LABELS[96:]).tolist())
    assert (accuracy.training.tolist(), accuracy.evaluation.tolist()) == (
        logged["accuracy"],
        logged["val_accuracy"],
    )
    steps = 3 if kind == "split" else 4
    assert accuracy.steps.tolist() == [steps, 2 * steps]
